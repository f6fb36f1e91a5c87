// libringbolt-paths.so: a preload library for programs that look at /sys/class/infiniband, /sys/class/infiniband_verbs
// or /dev/infiniband. It answers from the tree that $RINGBOLT_SYSROOT names (docs/command.md has what is in it) and
// leaves every other path alone. Without the variable it does nothing. Counters alone are not in the tree: they are
// read at the moment that a program opens them (live_counters.h).
//
// Plain C on libc alone, because it is loaded into every program. Thread-safe. Does not see: programs that are linked
// statically or make system calls themselves, modules loaded with RTLD_DEEPBIND, setuid programs, paths relative to a
// folder descriptor (but counters in an open folder), and paths with "//" or ".." before the redirected part.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live_counters.h"

// The headers redirect or fortify some names; here the functions themselves are defined.
#undef open
#undef open64
#undef openat
#undef openat64
#undef fopen
#undef fopen64
#undef stat
#undef stat64
#undef lstat
#undef lstat64
#undef fstatat
#undef fstatat64
#undef realpath
#undef readlink
#undef readlinkat

#define EXPORT __attribute__((visibility("default")))

static const char* const redirected_prefixes[] = {"/sys/class/infiniband_verbs", "/sys/class/infiniband",
                                                  "/dev/infiniband"};

static int is_redirected(const char* path) {
  for (size_t i = 0; i < sizeof redirected_prefixes / sizeof redirected_prefixes[0]; ++i) {
    const size_t length = strlen(redirected_prefixes[i]);
    if (strncmp(path, redirected_prefixes[i], length) == 0 && (path[length] == '/' || path[length] == '\0')) {
      return 1;
    }
  }
  return 0;
}

static const char* sysroot(void) {
  const char* root = getenv("RINGBOLT_SYSROOT");
  return root == NULL || root[0] != '/' ? NULL : root;
}

/// The path to ask the real function for: `path`, or its twin below the root, built in `buffer`.
static const char* twin(const char* path, char buffer[PATH_MAX]) {
  if (path == NULL || path[0] != '/' || !is_redirected(path)) {
    return path;
  }
  const char* root = sysroot();
  if (root == NULL) {
    return path;
  }
  const size_t root_length = strlen(root);
  const size_t path_length = strlen(path);
  if (root_length + path_length >= PATH_MAX) {
    return path;
  }
  memcpy(buffer, root, root_length);
  memcpy(buffer + root_length, path, path_length + 1);
  return buffer;
}

/// As open_counter(), for any path; `folder` as openat() has it.
static int counter(int folder, const char* path, int flags) {
  if (path == NULL || path[0] == '\0') {
    return RINGBOLT_NO_COUNTER;
  }
  const char* root = sysroot();
  if (root == NULL) {
    return RINGBOLT_NO_COUNTER;
  }
  if (path[0] == '/') {
    return is_redirected(path) ? open_counter(root, path, flags) : RINGBOLT_NO_COUNTER;
  }
  return folder >= 0 ? open_counter_at(root, folder, path, flags) : RINGBOLT_NO_COUNTER;
}

/// The function of that name behind us. Kept in `*slot`; two threads may look it up at once and find the same.
static void* real(_Atomic(void*)* slot, const char* name) {
  void* function = atomic_load_explicit(slot, memory_order_relaxed);
  if (function == NULL) {
    function = dlsym(RTLD_NEXT, name);
    atomic_store_explicit(slot, function, memory_order_relaxed);
  }
  return function;
}

/// In a function named `name` with result `type`: declares `next`, the real one, or leaves with `failed` and ENOSYS
/// where this libc has none. Copied as bytes: ISO C knows no conversion from void* to a function.
#define NEXT(type, failed, name, ...)     \
  static _Atomic(void*) slot;             \
  void* const found = real(&slot, #name); \
  type (*next)(__VA_ARGS__);              \
  memcpy(&next, &found, sizeof next);     \
  if (next == NULL) {                     \
    errno = ENOSYS;                       \
    return failed;                        \
  }                                       \
  char buffer[PATH_MAX]

#define OPEN_LIKE(name)                                               \
  EXPORT int name(const char* path, int flags, ...) {                 \
    NEXT(int, -1, name, const char*, int, ...);                       \
    const int live = counter(AT_FDCWD, path, flags);                  \
    if (live != RINGBOLT_NO_COUNTER) {                                \
      return live;                                                    \
    }                                                                 \
    mode_t mode = 0;                                                  \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list arguments;                                              \
      va_start(arguments, flags);                                     \
      mode = va_arg(arguments, mode_t);                               \
      va_end(arguments);                                              \
    }                                                                 \
    return next(twin(path, buffer), flags, mode);                     \
  }
OPEN_LIKE(open)
OPEN_LIKE(open64)

#define OPENAT_LIKE(name)                                             \
  EXPORT int name(int folder, const char* path, int flags, ...) {     \
    NEXT(int, -1, name, int, const char*, int, ...);                  \
    const int live = counter(folder, path, flags);                    \
    if (live != RINGBOLT_NO_COUNTER) {                                \
      return live;                                                    \
    }                                                                 \
    mode_t mode = 0;                                                  \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
      va_list arguments;                                              \
      va_start(arguments, flags);                                     \
      mode = va_arg(arguments, mode_t);                               \
      va_end(arguments);                                              \
    }                                                                 \
    return next(folder, twin(path, buffer), flags, mode);             \
  }
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)

// What _FORTIFY_SOURCE makes of open() and its like.
#define OPEN_2_LIKE(name)                                                        \
  EXPORT int name(const char* path, int flags);                                  \
  EXPORT int name(const char* path, int flags) {                                 \
    NEXT(int, -1, name, const char*, int);                                       \
    const int live = counter(AT_FDCWD, path, flags);                             \
    return live != RINGBOLT_NO_COUNTER ? live : next(twin(path, buffer), flags); \
  }
OPEN_2_LIKE(__open_2)
OPEN_2_LIKE(__open64_2)

#define OPENAT_2_LIKE(name)                                                              \
  EXPORT int name(int folder, const char* path, int flags);                              \
  EXPORT int name(int folder, const char* path, int flags) {                             \
    NEXT(int, -1, name, int, const char*, int);                                          \
    const int live = counter(folder, path, flags);                                       \
    return live != RINGBOLT_NO_COUNTER ? live : next(folder, twin(path, buffer), flags); \
  }
OPENAT_2_LIKE(__openat_2)
OPENAT_2_LIKE(__openat64_2)

/// The same for fopen(). False: `path` is no counter.
static int open_counter_file(const char* path, const char* mode, FILE** file) {
  const int reads = mode != NULL && mode[0] == 'r' && strchr(mode, '+') == NULL;
  const int keeps = mode != NULL && strchr(mode, 'e') != NULL;
  const int fd = counter(AT_FDCWD, path, (reads ? O_RDONLY : O_RDWR) | (keeps ? O_CLOEXEC : 0));
  if (fd == RINGBOLT_NO_COUNTER) {
    return 0;
  }
  *file = fd < 0 ? NULL : fdopen(fd, "r");
  if (fd >= 0 && *file == NULL) {
    close(fd);
  }
  return 1;
}

#define FOPEN_LIKE(name)                                                                 \
  EXPORT FILE* name(const char* path, const char* mode) {                                \
    NEXT(FILE*, NULL, name, const char*, const char*);                                   \
    FILE* live = NULL;                                                                   \
    return open_counter_file(path, mode, &live) ? live : next(twin(path, buffer), mode); \
  }
FOPEN_LIKE(fopen)
FOPEN_LIKE(fopen64)

#define STAT_LIKE(name, type)                              \
  EXPORT int name(const char* path, struct type* status) { \
    NEXT(int, -1, name, const char*, struct type*);        \
    return next(twin(path, buffer), status);               \
  }
STAT_LIKE(stat, stat)
STAT_LIKE(stat64, stat64)
STAT_LIKE(lstat, stat)
STAT_LIKE(lstat64, stat64)

#define FSTATAT_LIKE(name, type)                                                  \
  EXPORT int name(int folder, const char* path, struct type* status, int flags) { \
    NEXT(int, -1, name, int, const char*, struct type*, int);                     \
    return next(folder, twin(path, buffer), status, flags);                       \
  }
FSTATAT_LIKE(fstatat, stat)
FSTATAT_LIKE(fstatat64, stat64)

// Programs built against glibc before 2.33 call these instead.
#define XSTAT_LIKE(name, type)                                          \
  EXPORT int name(int version, const char* path, struct type* status);  \
  EXPORT int name(int version, const char* path, struct type* status) { \
    NEXT(int, -1, name, int, const char*, struct type*);                \
    return next(version, twin(path, buffer), status);                   \
  }
XSTAT_LIKE(__xstat, stat)
XSTAT_LIKE(__xstat64, stat64)
XSTAT_LIKE(__lxstat, stat)
XSTAT_LIKE(__lxstat64, stat64)

#define FXSTATAT_LIKE(name, type)                                                              \
  EXPORT int name(int version, int folder, const char* path, struct type* status, int flags);  \
  EXPORT int name(int version, int folder, const char* path, struct type* status, int flags) { \
    NEXT(int, -1, name, int, int, const char*, struct type*, int);                             \
    return next(version, folder, twin(path, buffer), status, flags);                           \
  }
FXSTATAT_LIKE(__fxstatat, stat)
FXSTATAT_LIKE(__fxstatat64, stat64)

EXPORT int statx(int folder, const char* restrict path, int flags, unsigned mask, struct statx* restrict status) {
  NEXT(int, -1, statx, int, const char*, int, unsigned, struct statx*);
  return next(folder, twin(path, buffer), flags, mask, status);
}

EXPORT int access(const char* path, int mode) {
  NEXT(int, -1, access, const char*, int);
  return next(twin(path, buffer), mode);
}

EXPORT int euidaccess(const char* path, int mode) {
  NEXT(int, -1, euidaccess, const char*, int);
  return next(twin(path, buffer), mode);
}

EXPORT int eaccess(const char* path, int mode) {
  NEXT(int, -1, eaccess, const char*, int);
  return next(twin(path, buffer), mode);
}

EXPORT int faccessat(int folder, const char* path, int mode, int flags) {
  NEXT(int, -1, faccessat, int, const char*, int, int);
  return next(folder, twin(path, buffer), mode, flags);
}

EXPORT char* realpath(const char* restrict path, char* restrict resolved) {
  NEXT(char*, NULL, realpath, const char*, char*);
  return next(twin(path, buffer), resolved);
}

EXPORT char* __realpath_chk(const char* path, char* resolved, size_t length);
EXPORT char* __realpath_chk(const char* path, char* resolved, size_t length) {
  NEXT(char*, NULL, __realpath_chk, const char*, char*, size_t);
  return next(twin(path, buffer), resolved, length);
}

EXPORT char* canonicalize_file_name(const char* path) {
  NEXT(char*, NULL, canonicalize_file_name, const char*);
  return next(twin(path, buffer));
}

EXPORT ssize_t readlink(const char* restrict path, char* restrict target, size_t length) {
  NEXT(ssize_t, -1, readlink, const char*, char*, size_t);
  return next(twin(path, buffer), target, length);
}

EXPORT ssize_t __readlink_chk(const char* path, char* target, size_t length, size_t room);
EXPORT ssize_t __readlink_chk(const char* path, char* target, size_t length, size_t room) {
  NEXT(ssize_t, -1, __readlink_chk, const char*, char*, size_t, size_t);
  return next(twin(path, buffer), target, length, room);
}

EXPORT ssize_t readlinkat(int folder, const char* restrict path, char* restrict target, size_t length) {
  NEXT(ssize_t, -1, readlinkat, int, const char*, char*, size_t);
  return next(folder, twin(path, buffer), target, length);
}

EXPORT DIR* opendir(const char* path) {
  NEXT(DIR*, NULL, opendir, const char*);
  return next(twin(path, buffer));
}

typedef int (*choose_entry)(const struct dirent*);
typedef int (*order_entries)(const struct dirent**, const struct dirent**);
typedef int (*choose_entry_64)(const struct dirent64*);
typedef int (*order_entries_64)(const struct dirent64**, const struct dirent64**);

EXPORT int scandir(const char* restrict path, struct dirent*** restrict entries, choose_entry choose,
                   order_entries order) {
  NEXT(int, -1, scandir, const char*, struct dirent***, choose_entry, order_entries);
  return next(twin(path, buffer), entries, choose, order);
}

EXPORT int scandir64(const char* restrict path, struct dirent64*** restrict entries, choose_entry_64 choose,
                     order_entries_64 order) {
  NEXT(int, -1, scandir64, const char*, struct dirent64***, choose_entry_64, order_entries_64);
  return next(twin(path, buffer), entries, choose, order);
}
