/* R with ThreadSanitizer in the program itself: preloaded into R, its run time does not start. */
#include <Rembedded.h>

extern int R_running_as_main_program;
void Rf_mainloop(void);

int main(int count, char **words)
{
  R_running_as_main_program = 1;
  Rf_initialize_R(count, words);
  Rf_mainloop();
  return 0;
}
