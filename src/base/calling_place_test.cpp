#include "base/calling_place.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace ringbolt::base {
namespace {

/// An address in code of somebody else's: here a library stands for the program. This test has the call of ours in it,
/// and is taken for one of our libraries.
uintptr_t of_program(const char* function = "cos") {
  static void* const library = ::dlopen("libm.so.6", RTLD_NOW);
  return reinterpret_cast<uintptr_t>(::dlsym(library, function)) + 1;
}

/// Frames of functions that have frame pointers, the innermost first, on this thread's stack: where the next one lies,
/// and where the function returns to.
struct Frame {
  uintptr_t next;
  uintptr_t returns_to;
};

uintptr_t address_of(const Frame& frame) { return reinterpret_cast<uintptr_t>(&frame); }

CallSite site_of(const Frame& innermost, uintptr_t returns_to) {
  return call_site_of(&innermost, reinterpret_cast<const void*>(returns_to));
}

TEST(CallingPlace, callers_of_the_program_are_found_by_its_frame_pointers) {
  std::array<Frame, 4> frames{};
  frames[0].next = address_of(frames[1]);
  frames[1] = {address_of(frames[2]), 0x1111};
  frames[2] = {address_of(frames[3]), 0x2222};
  frames[3] = {0, 0x3333};
  const CallSite site = site_of(frames[0], of_program());
  EXPECT_EQ(site.returns[0], of_program());
  EXPECT_EQ(site.returns[1], 0x1111U);  // whose these are need not be known
  EXPECT_EQ(site.returns[2], 0x2222U);
}

// Optimized code has anything in the register of frame pointers.
TEST(CallingPlace, what_is_no_frame_pointer_is_not_followed) {
  std::array<Frame, 2> frames{};
  frames[1].returns_to = 0x1111;
  for (const uintptr_t next : {uintptr_t{0}, uintptr_t{7}, address_of(frames[1]) + 1, address_of(frames[0]),
                               address_of(frames[0]) - 64, UINTPTR_MAX - 7}) {
    frames[0].next = next;
    const CallSite site = site_of(frames[0], of_program());
    EXPECT_EQ(site.returns[0], of_program());
    EXPECT_EQ(site.returns[1], 0U) << next;
  }
}

// Libraries of ours have no frame pointers, but for one of them: who called them is not guessed.
TEST(CallingPlace, callers_of_a_library_without_frame_pointers_are_not_looked_for) {
  const auto own = reinterpret_cast<uintptr_t>(&call_site);
  std::array<Frame, 2> frames{};
  frames[0].next = address_of(frames[1]);
  frames[1] = {0, of_program()};
  EXPECT_EQ(site_of(frames[0], own).returns, (std::array<uintptr_t, 3>{own, 0, 0}));
}

// Of code that no library has, as compilers at run time make it, the place is its address.
TEST(CallingPlace, code_of_nobody_is_the_program) {
  void* const made = std::malloc(64);  // NOLINT: an address outside of all that is loaded
  std::array<Frame, 1> frames{};
  const auto address = reinterpret_cast<uintptr_t>(made);
  EXPECT_EQ(site_of(frames[0], address).returns[0], address);
  std::free(made);  // NOLINT
}

// The same slot of what is remembered, for different addresses in turns.
TEST(CallingPlace, addresses_are_not_taken_for_one_another) {
  const auto own = reinterpret_cast<uintptr_t>(&call_site);
  std::array<Frame, 2> frames{};
  frames[0].next = address_of(frames[1]);
  frames[1] = {0, 0x1111};
  for (uintptr_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(site_of(frames[0], own + i % 3).returns[1], 0U);
    ASSERT_EQ(site_of(frames[0], of_program() + i % 5).returns[1], 0x1111U);
  }
}

}  // namespace
}  // namespace ringbolt::base
