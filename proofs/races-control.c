/* Two threads: a sum with a race, and one without. The proof checks both before it checks weft. */
static int total;

void racing(int *out)
{
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 100000; i++) total += i & 1;
  *out = total;
}

void waiting(int *out)
{
  int sum = 0, x[2000];
#pragma omp parallel for num_threads(2) reduction(+ : sum)
  for (int i = 0; i < 2000; i++) {
    x[i] = i & 1;
    sum += x[i];
  }
  for (int i = 0; i < 2000; i++) sum += x[i];
  *out = sum;
}
