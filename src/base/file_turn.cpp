// Each who asks locks the byte behind the last one that anybody has locked: his number. It is his turn when nobody
// holds a smaller one. So nobody is overtaken, and the kernel takes back the numbers of the dead. The locks are those
// of open files (F_OFD_*): they are the descriptor's, not the process', and tell threads apart.
#include "base/file_turn.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/condition.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "base/start_thread.h"

namespace ringbolt::base {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10U;  // a process may have little address space left (ulimit -v)

/// What threads of this process do in their turns happens in the order of these: nothing says that of a file's locks.
/// Nobody reads the value: each turn releases here as it ends, and the next one acquires as it begins.
std::atomic<uint32_t> n_turns{0};

struct flock range_of(short type, off_t first, off_t length) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = first;
  range.l_len = length;
  return range;
}

/// 0 or an errno; EAGAIN: others have something of it.
// EACCES and EAGAIN mean the same here: which one it is depends on the system (fcntl_locking(2)).
int set_lock(int fd, short type, off_t first, off_t length) {
  struct flock range = range_of(type, first, length);
  if (::fcntl(fd, F_OFD_SETLK, &range) == 0) {
    return 0;
  }
  return errno == EACCES ? EAGAIN : errno;
}

/// The first byte behind all those that others have locked, from `at` on; `at` if they have none there. -1 with errno.
// Own locks do not count: they belong to this open file, as what is asked for does.
off_t behind_others(int fd, off_t at) {
  for (;;) {
    struct flock found = range_of(F_WRLCK, at, 0);
    if (::fcntl(fd, F_OFD_GETLK, &found) != 0) {
      return -1;
    }
    if (found.l_type == F_UNLCK) {
      return at;
    }
    if (found.l_len == 0) {  // all of the file: nobody who knows our ways
      errno = EWOULDBLOCK;
      return -1;
    }
    at = found.l_start + found.l_len;  // the kernel names any of them, so those behind it are asked for again
  }
}

/// Our number. -1 with errno.
off_t draw_number(int fd) {
  for (;;) {
    // There is no bound on these rounds, but each one is lost only to somebody who has drawn a number meanwhile, or
    // who stands back as we do.
    const off_t number = behind_others(fd, 0);
    if (number < 0) {
      return -1;
    }
    if (const int error = set_lock(fd, F_WRLCK, number, 1)) {
      if (error != EAGAIN) {
        errno = error;
        return -1;
      }
      continue;  // another one was as fast
    }
    // Others may have drawn larger numbers since we looked, and may not have seen ours. A tie is broken by both
    // standing back.
    const off_t last = behind_others(fd, number + 1);
    if (last == number + 1) {
      return number;
    }
    const int error = last < 0 ? errno : 0;
    // It is kept only as the largest: one in the middle would overtake those behind it. An unlock of what is ours
    // cannot fail for contention.
    set_lock(fd, F_UNLCK, number, 1);
    if (error != 0) {
      errno = error;
      return -1;
    }
  }
}

/// The wait for all smaller numbers, on a thread of its own: no call waits for a lock with a limit of time.
// Lives on the stack of the thread that waits, which joins the other one before it leaves.
struct Wait {
  int fd;
  off_t number;
  Mutex mutex;
  Condition changed;
  std::optional<int> result = {};  // under mutex
};

/// Cancelled in fcntl() only, where nothing is held. Nothing here has a destructor: then no handler of this library's
/// runs while glibc unwinds the thread, with an unwinder that may be another one than ours. Without AddressSanitizer,
/// which marks what lies around a frame's variables, and is not told of frames that a cancellation takes away.
[[gnu::no_sanitize_address]] void* wait_for_smaller(void* argument) {
  auto& wait = *static_cast<Wait*>(argument);
  // First for the one just before us, so that each that goes wakes one; then for any whose successor has given up.
  struct flock before = range_of(F_RDLCK, wait.number - 1, 1);
  int error = ::fcntl(wait.fd, F_OFD_SETLKW, &before) == 0 ? 0 : errno;
  if (error == 0) {
    before = range_of(F_RDLCK, 0, wait.number);
    error = ::fcntl(wait.fd, F_OFD_SETLKW, &before) == 0 ? 0 : errno;
  }
  // From here on a cancellation that comes too late does nothing: the mutex is never left locked.
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  wait.mutex.lock();
  wait.result = error;
  wait.changed.notify_one();
  wait.mutex.unlock();
  return nullptr;
}

int wait_in_thread(int fd, off_t number, uint64_t patience_ms) {
  Wait wait{fd, number, {}, {}};
  pthread_attr_t small{};
  ::pthread_attr_init(&small);
  ::pthread_attr_setstacksize(&small, kStackBytes);
  pthread_t thread{};
  int error = 0;
  {
    const BlockedSignals blocked;
    error = ::pthread_create(&thread, &small, wait_for_smaller, &wait);
  }
  ::pthread_attr_destroy(&small);
  if (error != 0) {
    return error;
  }
  bool is_late = false;
  {
    const LockGuard guard(wait.mutex);
    is_late = !wait.changed.wait_for(wait.mutex, std::chrono::milliseconds(patience_ms),
                                     [&]() RINGBOLT_REQUIRES(wait.mutex) { return wait.result.has_value(); });
  }
  if (is_late) {
    // F_OFD_SETLKW is a cancellation point, and the kernel takes back a wait that was interrupted; if the lock came
    // at the same moment, end_file_turn() of our caller gives it back.
    ::pthread_cancel(thread);
  }
  ::pthread_join(thread, nullptr);
  const LockGuard guard(wait.mutex);
  // No result: it was cancelled before it got one.
  return wait.result.value_or(EWOULDBLOCK);
}

}  // namespace

int take_file_turn(int fd, uint64_t patience_ms) {
  const off_t number = draw_number(fd);
  if (number < 0) {
    return errno;
  }
  // A read lock over all smaller numbers is granted only once none of them is write-locked any more, and then holds
  // up nobody but those who would draw one of them anew.
  int error = number == 0 ? 0 : set_lock(fd, F_RDLCK, 0, number);
  if (error == EAGAIN) {
    error = patience_ms == 0 ? EWOULDBLOCK : wait_in_thread(fd, number, patience_ms);
  }
  if (error != 0) {
    end_file_turn(fd);
  } else if (number != 0) {
    set_lock(fd, F_UNLCK, 0, number);  // the smaller numbers may be drawn anew once ours is gone
  }
  n_turns.fetch_add(1, std::memory_order_acq_rel);
  return error;
}

void end_file_turn(int fd) {
  n_turns.fetch_add(1, std::memory_order_acq_rel);
  // All of the file: the number, and what the wait may have got.
  set_lock(fd, F_UNLCK, 0, 0);
}

}  // namespace ringbolt::base
