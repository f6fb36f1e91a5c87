// What the compiler's libstdc++.a calls and C libraries before 2.36 lack; for packages alone (cmake/portable.cmake). Hidden: no
// program gets these from us.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32: whether locks may be left out. They never may.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.36: a random number that can't fail. getrandom() fails for no reason but a signal, at such a size: random(7).
HIDDEN uint32_t arc4random(void) {
  uint32_t number;
  while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
    if (errno != EINTR) {
      abort();
    }
  }
  return number;
}
