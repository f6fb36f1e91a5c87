#define _GNU_SOURCE
#include "live_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/counter_layout.h"

static const char devices[] = "/sys/class/infiniband/";
static const char port[] = "/ports/1/";

/// The counter that `path` names; its device, a part of the path, goes to `device` and `length`.
static const struct RingboltCounter* parse(const char* path, const char** device, size_t* length) {
  if (strncmp(path, devices, sizeof devices - 1) != 0) {
    return NULL;
  }
  *device = path + sizeof devices - 1;
  *length = strcspn(*device, "/");
  const char* rest = *device + *length;
  if (*length == 0 || strncmp(rest, port, sizeof port - 1) != 0) {
    return NULL;
  }
  rest += sizeof port - 1;
  const char* slash = strchr(rest, '/');
  char folder[16];
  if (slash == NULL || (size_t)(slash - rest) >= sizeof folder) {
    return NULL;
  }
  memcpy(folder, rest, (size_t)(slash - rest));
  folder[slash - rest] = '\0';
  return ringbolt_find_counter(folder, slash + 1);
}

static int is_block_whole(int file, size_t index, uint64_t* block) {
  const off_t at = (off_t)(index * RINGBOLT_COUNTER_BLOCK_BYTES);
  return pread(file, block, RINGBOLT_COUNTER_BLOCK_BYTES, at) == RINGBOLT_COUNTER_BLOCK_BYTES;
}

/// False when the file is no file of counters. One that is missing has counted nothing.
static int add_up(const char* path, struct RingboltCounterSum* sum) {
  memset(sum, 0, sizeof *sum);
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return errno == ENOENT;
  }
  uint64_t block[RINGBOLT_COUNTER_BLOCK_BYTES / sizeof(uint64_t)];
  struct stat status;
  const int is_empty = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
  const int is_ours = !is_empty && is_block_whole(file, 0, block) &&
                      memcmp(block, RINGBOLT_COUNTER_MAGIC, sizeof RINGBOLT_COUNTER_MAGIC) == 0;
  for (size_t i = 1; is_ours && i < RINGBOLT_COUNTER_MAX_BLOCKS && is_block_whole(file, i, block); ++i) {
    ringbolt_add_block(block, sum);
  }
  close(file);
  return is_ours || is_empty;
}

static int descriptor_of(const struct RingboltCounter* counter, const struct RingboltCounterSum* sum, int flags) {
  char text[32];
  const int length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)ringbolt_counter_value(counter, sum));
  const int fd = memfd_create(counter->name, (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0U);
  if (fd >= 0 && pwrite(fd, text, (size_t)length, 0) != length) {
    close(fd);
    return -1;
  }
  return fd;
}

int open_counter(const char* root, const char* path, int flags) {
  const char* device = NULL;
  size_t length = 0;
  const struct RingboltCounter* counter = parse(path, &device, &length);
  if (counter == NULL || (flags & (O_PATH | O_DIRECTORY)) != 0) {
    return RINGBOLT_NO_COUNTER;
  }
  if ((flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY) {
    errno = EACCES;
    return -1;
  }
  char file[PATH_MAX];
  struct stat link;
  if ((size_t)snprintf(file, sizeof file, "%s/counters/%.*s", root, (int)length, device) >= sizeof file) {
    return RINGBOLT_NO_COUNTER;
  }
  const int kept = errno;
  if (lstat(file, &link) != 0) {
    errno = kept;
    return RINGBOLT_NO_COUNTER;  // there is no such device
  }
  struct RingboltCounterSum sum;
  if (!add_up(file, &sum)) {
    errno = EIO;
    return -1;
  }
  errno = kept;
  return descriptor_of(counter, &sum, flags);
}

int open_counter_at(const char* root, int folder, const char* name, int flags) {
  if (strchr(name, '/') != NULL ||
      (ringbolt_find_counter("counters", name) == NULL && ringbolt_find_counter("hw_counters", name) == NULL)) {
    return RINGBOLT_NO_COUNTER;
  }
  const int kept = errno;
  char link[40];
  char path[2 * PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  errno = kept;
  const size_t root_length = strlen(root);
  if (length <= 0 || (size_t)length <= root_length || strncmp(path, root, root_length) != 0) {
    return RINGBOLT_NO_COUNTER;
  }
  snprintf(path + length, sizeof path - (size_t)length, "/%s", name);
  return open_counter(root, path + root_length, flags);
}
