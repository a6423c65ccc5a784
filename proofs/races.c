/* R with ThreadSanitizer in the program itself: preloaded into R, its run time does not start. What weft asks of OpenMP
 * before each of its regions comes by here, so that the proof can say which regions had more than one thread: they are
 * appended to the file $WEFT_REGIONS as "<file>:<line>". */
#define _GNU_SOURCE
#include <Rembedded.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int R_running_as_main_program;
void Rf_mainloop(void);

/* of LLVM's OpenMP; `source`: ";file;function;line;column;;" */
typedef struct place { int flags[4]; const char *source; } place;
void __kmpc_push_num_threads(place *at, int thread, int threads);

#define MOST 1000
static const char *seen[MOST];
static size_t count;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *source)
{
  size_t k = 0;
  pthread_mutex_lock(&one_at_a_time);
  while (k < count && seen[k] != source) k++;
  if (k == count && count < MOST) seen[count++] = source;
  pthread_mutex_unlock(&one_at_a_time);
}

void __kmpc_push_num_threads(place *at, int thread, int threads)
{
  static void (*next)(place *, int, int);
  if (!next) *(void **) &next = dlsym(RTLD_NEXT, "__kmpc_push_num_threads");
  if (threads > 1) note(at->source);
  next(at, thread, threads);
}

static void tell(void)
{
  const char *name = getenv("WEFT_REGIONS");
  FILE *out = name ? fopen(name, "a") : NULL;
  if (!out) return;
  for (size_t k = 0; k < count; k++) {
    char file[500];
    int line;
    if (sscanf(seen[k], ";%499[^;];%*[^;];%d", file, &line) == 2) fprintf(out, "%s:%d\n", file, line);
  }
  fclose(out);
}

int main(int words_given, char **words)
{
  atexit(tell);
  R_running_as_main_program = 1;
  Rf_initialize_R(words_given, words);
  Rf_mainloop();
  return 0;
}
