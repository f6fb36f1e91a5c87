/* The same in C: gcc all_reduce.c $(pkg-config --cflags --libs ringbolt) -o all_reduce */
#include <stdio.h>

#include <ringbolt/ringbolt.h>

int main(void) {
  ringbolt_group* group = NULL;
  if (ringbolt_join(&group) != 0) {
    fprintf(stderr, "%s\n", ringbolt_error());
    return 1;
  }
  float mine[1000];
  float sum[1000];
  for (int i = 0; i < 1000; ++i) {
    mine[i] = (float)(ringbolt_rank(group) + 1);
  }
  const int error = ringbolt_all_reduce(group, mine, sum, 1000, RINGBOLT_FLOAT32, RINGBOLT_SUM, 10000);
  if (error != 0) {
    fprintf(stderr, "rank %u: %s\n", ringbolt_rank(group), ringbolt_error());
  } else {
    printf("rank %u of %u: every element is %g\n", ringbolt_rank(group), ringbolt_size(group), sum[999]);
  }
  ringbolt_leave(group);
  return error != 0;
}
