// Memory that runs short when a test says so: the program's malloc and its like, mmap and memfd_create.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace ringbolt::border {

/// While it lives, the `nth` request for memory of this thread is refused with ENOMEM; the others are granted.
class Shortage {
 public:
  explicit Shortage(uint32_t nth);
  ~Shortage();
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;
  bool has_struck() const;
};

/// Pieces of memory that this process holds, mappings not counted.
int64_t pieces_held();

/// Calls that change nothing of what can be seen, and nothing to look at.
inline constexpr auto kNothing = [] {};

/// Calls `call`, which answers 0 or an errno, with the first, the second, ... request for memory refused, until one
/// call needs no more than it gets. Where it succeeds all the same `undo` takes back what it did; whenever it fails it
/// has to say ENOMEM, and `check` looks that all is as before. Each shortage comes several times: what grows each time
/// is lost.
template <class Call, class Undo, class Check>
void survive(const char* what, Call call, Undo undo, Check check) {
  constexpr int kRounds = 4;
  constexpr uint32_t kMostRequests = 5000;
  for (uint32_t nth = 1; nth < kMostRequests; ++nth) {
    int grown = 0;
    int64_t before = 0;
    for (int round = 0; round < kRounds; ++round) {
      int error = 0;
      bool has_struck = false;
      {
        const Shortage shortage(nth);
        error = call();
        has_struck = shortage.has_struck();
      }
      SCOPED_TRACE(testing::Message() << what << ", request for memory " << nth);
      if (error == 0) {
        undo();
      } else {
        ASSERT_TRUE(has_struck) << std::strerror(error);
        ASSERT_EQ(error, ENOMEM) << std::strerror(error);
      }
      check();
      if (testing::Test::HasFailure()) {
        return;
      }
      if (!has_struck) {
        return;
      }
      const int64_t held = pieces_held();
      grown += round > 0 && held > before ? 1 : 0;
      before = held;
    }
    ASSERT_LT(grown, kRounds - 1) << what << ", request for memory " << nth << ": some of it is lost";
  }
  ADD_FAILURE() << what << ": no end of requests";
}

template <class Call, class Undo>
void survive(const char* what, Call call, Undo undo) {
  survive(what, call, undo, kNothing);
}

/// The same for what may not fail: each time `make` prepares, and the call has to succeed.
template <class Make, class Call>
void succeed(const char* what, Make make, Call call) {
  for (uint32_t nth = 1;; ++nth) {
    make();
    int error = 0;
    bool has_struck = false;
    {
      const Shortage shortage(nth);
      error = call();
      has_struck = shortage.has_struck();
    }
    ASSERT_EQ(error, 0) << what << ", request for memory " << nth << ": " << std::strerror(error);
    if (!has_struck) {
      return;
    }
  }
}

/// The errno of a call that returned -1 or NULL, else 0.
inline int error_of(int answer) { return answer == 0 ? 0 : errno; }
inline int error_of(const void* answer) { return answer != nullptr ? 0 : errno; }

}  // namespace ringbolt::border
