/* R within a fuzzer, begun once. */
#include <Rembedded.h>

extern int R_SignalHandlers;

int LLVMFuzzerInitialize(int *count, char ***words)
{
  char *arguments[] = { "R", "--vanilla", "--silent", "--no-readline" };
  (void) count;
  (void) words;
  R_SignalHandlers = 0; /* a crash is libFuzzer's to report */
  Rf_initEmbeddedR(4, arguments);
  return 0;
}
