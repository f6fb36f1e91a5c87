// Asks for one path through every function that libringbolt-paths.so answers, and prints what each said: the name of
// the function and "found" or the error. The test compares that with and without the library.
//
//   path_calls FOLDER FILE LINK

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char* name, int is_found) { printf("%s: %s\n", name, is_found ? "found" : strerror(errno)); }

static void say_fd(const char* name, int fd) {
  say(name, fd >= 0);
  if (fd >= 0) {
    close(fd);
  }
}

static void say_file(const char* name, FILE* file) {
  say(name, file != NULL);
  if (file != NULL) {
    fclose(file);
  }
}

static void open_calls(const char* file, int flags) {
  // Flags that the compiler does not know make the fortified names: __open_2 and its like.
  say_fd("open", open(file, O_RDONLY));
  say_fd("open fortified", open(file, flags));
  say_fd("open64", open64(file, O_RDONLY));
  say_fd("open64 fortified", open64(file, flags));
  say_fd("openat", openat(AT_FDCWD, file, O_RDONLY));
  say_fd("openat fortified", openat(AT_FDCWD, file, flags));
  say_fd("openat64 fortified", openat64(AT_FDCWD, file, flags));
  say_file("fopen", fopen(file, "r"));
  say_file("fopen64", fopen64(file, "r"));
}

static void stat_calls(const char* file) {
  struct stat status;
  struct stat64 status64;
  struct statx statusx;
  say("stat", stat(file, &status) == 0);
  say("stat64", stat64(file, &status64) == 0);
  say("lstat", lstat(file, &status) == 0);
  say("lstat64", lstat64(file, &status64) == 0);
  say("fstatat", fstatat(AT_FDCWD, file, &status, 0) == 0);
  say("fstatat64", fstatat64(AT_FDCWD, file, &status64, 0) == 0);
  say("statx", statx(AT_FDCWD, file, 0, STATX_TYPE, &statusx) == 0);
  say("access", access(file, R_OK) == 0);
  say("euidaccess", euidaccess(file, R_OK) == 0);
  say("faccessat", faccessat(AT_FDCWD, file, R_OK, 0) == 0);
}

/// The names that programs of before glibc 2.33 call; the linker no longer offers them.
static void old_stat_calls(const char* file) {
  const char* const names[] = {"__xstat", "__xstat64", "__lxstat", "__lxstat64"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    struct stat64 status;
    int (*call)(int, const char*, void*);
    void* const found = dlsym(RTLD_DEFAULT, names[i]);
    memcpy(&call, &found, sizeof call);
    say(names[i], call != NULL && call(1, file, &status) == 0);
  }
  const char* const at_names[] = {"__fxstatat", "__fxstatat64"};
  for (size_t i = 0; i < sizeof at_names / sizeof at_names[0]; ++i) {
    struct stat64 status;
    int (*call)(int, int, const char*, void*, int);
    void* const found = dlsym(RTLD_DEFAULT, at_names[i]);
    memcpy(&call, &found, sizeof call);
    say(at_names[i], call != NULL && call(1, AT_FDCWD, file, &status, 0) == 0);
  }
}

static void folder_calls(const char* folder) {
  char resolved[PATH_MAX];
  say("realpath", realpath(folder, resolved) != NULL);
  char* canonical = canonicalize_file_name(folder);
  say("canonicalize_file_name", canonical != NULL);
  free(canonical);
  DIR* open_folder = opendir(folder);
  say("opendir", open_folder != NULL);
  if (open_folder != NULL) {
    closedir(open_folder);
  }
  struct dirent** entries = NULL;
  const int count = scandir(folder, &entries, NULL, alphasort);
  say("scandir", count >= 0);
  for (int i = 0; i < count; ++i) {
    free(entries[i]);
  }
  free(entries);
  struct dirent64** entries64 = NULL;
  const int count64 = scandir64(folder, &entries64, NULL, alphasort64);
  say("scandir64", count64 >= 0);
  for (int i = 0; i < count64; ++i) {
    free(entries64[i]);
  }
  free(entries64);
}

static void link_calls(const char* link, size_t room) {
  char target[PATH_MAX];
  say("readlink", readlink(link, target, sizeof target) >= 0);
  say("readlink fortified", readlink(link, target, room) >= 0);
  say("readlinkat", readlinkat(AT_FDCWD, link, target, sizeof target) >= 0);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    return 2;
  }
  open_calls(argv[2], atoi("0"));
  stat_calls(argv[2]);
  old_stat_calls(argv[2]);
  folder_calls(argv[1]);
  link_calls(argv[3], strlen(argv[2]) + 100);
  return 0;
}
