#include "base/c_border.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/error.h"

namespace ringbolt::base {
namespace {

template <class Exception>
int number_of(const Exception& exception) try {
  throw exception;
} catch (...) {
  return caught_errno();
}

TEST(CBorder, want_of_memory_is_enomem) {
  EXPECT_EQ(number_of(std::bad_alloc()), ENOMEM);
  EXPECT_EQ(number_of(std::bad_array_new_length()), ENOMEM);
}

TEST(CBorder, errors_keep_their_numbers) {
  EXPECT_EQ(number_of(Error(ENODEV, "open", "rocep1s0")), ENODEV);
  EXPECT_EQ(number_of(std::system_error(EAGAIN, std::generic_category())), EAGAIN);
  EXPECT_EQ(number_of(std::system_error(EMFILE, std::system_category())), EMFILE);
}

TEST(CBorder, what_has_no_number_is_eio_and_is_said_once) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(number_of(std::logic_error("the first")), EIO);
  EXPECT_EQ(number_of(std::runtime_error("the second")), EIO);
  EXPECT_EQ(number_of(Error(0, "open", "rocep1s0")), EIO);
  EXPECT_EQ(number_of(42), EIO);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the first"), std::string::npos) << said;
  EXPECT_EQ(said.find("the second"), std::string::npos) << said;
}

int throwing_number(int which) {
  if (which != 0) {
    throw std::bad_alloc();
  }
  return 0;
}
int* throwing_pointer(int) { throw std::bad_alloc(); }
void throwing_nothing(int) { throw std::bad_alloc(); }
int silent(int which) noexcept { return which; }

struct Table {
  int (*number)(int);
  int (*minus_one)(int);
  int* (*pointer)(int);
  void (*nothing)(int);
  int (*silent)(int);
};

Table filled() {
  Table table{};
  put(table.number, guarded<throwing_number>);
  put(table.minus_one, guarded<throwing_number, caught_minus_one>);
  put(table.pointer, guarded<throwing_pointer, caught_null>);
  put(table.nothing, guarded<throwing_nothing, caught_nothing>);
  put(table.silent, Guarded(silent));
  return table;
}

TEST(CBorder, a_guarded_function_answers_as_its_kind_does) {
  const Table table = filled();
  EXPECT_EQ(table.number(0), 0);
  EXPECT_EQ(table.number(1), ENOMEM);
  errno = 0;
  EXPECT_EQ(table.minus_one(1), -1);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(table.pointer(1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  table.nothing(1);
  EXPECT_EQ(table.silent(7), 7);
}

template <class Function>
concept MayStandInATable = requires(Table& table, Function function) {
  put(table.number, function);
};

TEST(CBorder, a_table_takes_no_function_that_may_throw) {
  static_assert(!MayStandInATable<int (*)(int)>);
  static_assert(MayStandInATable<int (*)(int) noexcept>);
  static_assert(MayStandInATable<Guarded<int(int)>>);
}

/// A system call of ours, deep within an exported function, with something to tidy up.
struct Sleeper {
  int pipe_end;
  bool* is_tidied;

  static int sleep_in_a_call(Sleeper* sleeper) {
    struct Tidy {
      bool* done;
      ~Tidy() { *done = true; }
    } const tidy{sleeper->is_tidied};
    char byte = 0;
    return static_cast<int>(read(sleeper->pipe_end, &byte, 1));
  }
};

int exported(Sleeper* sleeper) try {
  int (*call)(Sleeper*) = nullptr;
  put(call, guarded<Sleeper::sleep_in_a_call>);
  return call(sleeper);
} catch (...) {
  return caught_minus_one();
}

TEST(CBorder, a_cancelled_thread_unwinds_through) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  bool is_tidied = false;
  Sleeper sleeper{ends[0], &is_tidied};
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  exported(static_cast<Sleeper*>(argument));
                  return nullptr;
                },
                &sleeper),
            0);
  ASSERT_EQ(pthread_cancel(thread), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(is_tidied);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace ringbolt::base
