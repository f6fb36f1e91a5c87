/* Linked against the system's library; run on whatever the loader finds. Prints every answer of the functions that need
 * no device, so that two libraries can be compared, and with an argument where the library was loaded from. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>

static void print_names(void) {
  for (unsigned i = 0; i < 8; i++) {
    printf("node %u: %s\n", i, ibv_node_type_str((enum ibv_node_type)i));
    printf("port %u: %s\n", i, ibv_port_state_str((enum ibv_port_state)i));
  }
  for (unsigned i = 0; i < 32; i++) {
    printf("event %u: %s\n", i, ibv_event_type_str((enum ibv_event_type)i));
    printf("status %u: %s\n", i, ibv_wc_status_str((enum ibv_wc_status)i));
  }
}

static void print_rates(void) {
  for (unsigned i = 0; i < 32; i++)
    printf("rate %u: x%d, %d Mbit/s\n", i, ibv_rate_to_mult((enum ibv_rate)i), ibv_rate_to_mbps((enum ibv_rate)i));
  for (int i = -1; i < 1000; i++)
    if (mult_to_ibv_rate(i) != IBV_RATE_MAX) printf("x%d: rate %u\n", i, (unsigned)mult_to_ibv_rate(i));
  for (int i = -1; i < 1300000; i++)
    if (mbps_to_ibv_rate(i) != IBV_RATE_MAX) printf("%d Mbit/s: rate %u\n", i, (unsigned)mbps_to_ibv_rate(i));
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    Dl_info info;
    if (!dladdr(dlsym(RTLD_DEFAULT, "ibv_open_device"), &info)) return 1;
    puts(info.dli_fname);
    return 0;
  }
  print_names();
  print_rates();
  return 0;
}
