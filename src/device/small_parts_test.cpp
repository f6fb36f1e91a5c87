// Parts of a few lines each.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "device/async_events.h"
#include "device/event_count.h"
#include "device/frame_counts.h"
#include "device/gids.h"
#include "device/memory_kind.h"
#include "device/vendor_error.h"
#include "device/window_book.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::device {
namespace {

// --- The memory windows of a process.

constexpr uint32_t kDomain = 7;
constexpr uint32_t kRegion = 0x9900;

TEST(WindowBookTest, window_is_known_by_all_but_the_low_byte_of_its_key) {
  WindowBook book;
  book.add(0xabc012, kDomain);
  EXPECT_TRUE(book.holds(0xabc012, kDomain));
  EXPECT_TRUE(book.holds(0xabc0ff, kDomain));
  EXPECT_FALSE(book.holds(0xabc112, kDomain));
  EXPECT_FALSE(book.holds(0xabc012, kDomain + 1));
  book.remove(0xabc077);
  EXPECT_FALSE(book.holds(0xabc012, kDomain));
}

TEST(WindowBookTest, open_window_is_closed_under_the_key_of_its_last_binding) {
  WindowBook book;
  book.add(0xabc012, kDomain);
  EXPECT_EQ(book.close(0xabc012), 0U);  // it was not open
  book.open(0xabc013, kRegion);
  EXPECT_TRUE(book.has_window(kRegion));
  EXPECT_FALSE(book.has_window(kRegion + 1));
  book.open(0xabc014, kRegion + 1);  // over another region
  EXPECT_FALSE(book.has_window(kRegion));
  EXPECT_EQ(book.close(0xabc012), 0xabc014U);
  EXPECT_FALSE(book.has_window(kRegion + 1));
  EXPECT_EQ(book.close(0xabc012), 0U);
}

TEST(WindowBookTest, region_has_windows_until_the_last_one_is_gone) {
  WindowBook book;
  book.add(0x100, kDomain);
  book.add(0x200, kDomain);
  book.open(0x101, kRegion);
  book.open(0x201, kRegion);
  EXPECT_EQ(book.remove(0x100), 0x101U);
  EXPECT_TRUE(book.has_window(kRegion));
  EXPECT_EQ(book.close(0x200), 0x201U);
  EXPECT_FALSE(book.has_window(kRegion));
}

TEST(WindowBookTest, what_was_never_made_is_neither_opened_nor_closed) {
  WindowBook book;
  book.open(0x101, kRegion);
  EXPECT_FALSE(book.has_window(kRegion));
  EXPECT_EQ(book.close(0x101), 0U);
  EXPECT_EQ(book.remove(0x101), 0U);
}

// --- Frames of 4 KiB.

TEST(FrameCounts, message_without_a_byte_is_a_frame_and_pieces_are_counted_together) {
  const std::array<ibv_sge, 3> pieces{{{0, 4096, 0}, {0, 1, 0}, {0, 4095, 0}}};
  EXPECT_EQ(frames_of_pieces(pieces.data(), 0, false), 1U);
  EXPECT_EQ(frames_of_pieces(pieces.data(), 1, false), 1U);
  EXPECT_EQ(frames_of_pieces(pieces.data(), 2, false), 2U);
  EXPECT_EQ(frames_of_pieces(pieces.data(), 3, false), 2U);
  EXPECT_EQ(length_of_pieces(pieces.data(), 3), 8192U);
}

TEST(FrameCounts, pieces_that_are_messages_have_frames_of_their_own) {
  const std::array<ibv_sge, 3> pieces{{{0, 4096, 0}, {0, 1, 0}, {0, 4097, 0}}};
  EXPECT_EQ(frames_of_pieces(pieces.data(), 0, true), 1U);
  EXPECT_EQ(frames_of_pieces(pieces.data(), 3, true), 4U);
}

TEST(FrameCounts, lengths_of_pieces_do_not_wrap) {
  const std::array<ibv_sge, 2> pieces{{{0, 0xffffffff, 0}, {0, 0xffffffff, 0}}};
  EXPECT_EQ(length_of_pieces(pieces.data(), 2), 0x1fffffffeU);
}

TEST(FrameCounts, device_may_take_fewer_than_it_granted_but_not_fewer_than_none) {
  Port port;
  EXPECT_EQ(postable_frames(port, 1023), 1023U);
  port.profile.knobs.short_grant_frames = 16;
  EXPECT_EQ(postable_frames(port, 1023), 1007U);
  EXPECT_EQ(postable_frames(port, 16), 0U);
  EXPECT_EQ(postable_frames(port, 15), 0U);
}

// --- Where memory lies.

class Mapping {
 public:
  static constexpr size_t kBytes = 1U << 16U;
  Mapping() : data_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Mapping() { munmap(data_, kBytes); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }

 private:
  void* const data_;
};

TEST(MemoryKind, what_was_mapped_is_neither_heap_nor_stack) {
  const Mapping mapping;
  EXPECT_FALSE(is_on_heap_or_stack(mapping.address(), Mapping::kBytes));
  EXPECT_FALSE(is_on_heap_or_stack(0, 4096));
}

/// proc(5): the kernel names the memory below the program break so.
bool kernel_shows_a_heap() {
  std::ifstream maps("/proc/self/maps");
  const std::string all{std::istreambuf_iterator<char>(maps), {}};
  return all.find("[heap]\n") != std::string::npos;
}

TEST(MemoryKind, one_byte_on_the_heap_is_enough) {
  if (!kernel_shows_a_heap()) {
    GTEST_SKIP() << "skip: this process has no heap of the kernel's (a sanitizer's allocator), or /proc can't be read";
  }
  const auto heap = reinterpret_cast<uint64_t>(sbrk(0)) - 1;  // the last one
  EXPECT_TRUE(is_on_heap_or_stack(heap, 1));
  EXPECT_TRUE(is_on_heap_or_stack(heap - 100, 101));
  EXPECT_TRUE(is_on_heap_or_stack(heap, 1U << 20U));
  EXPECT_FALSE(is_on_heap_or_stack(heap + 1, 1));
}

TEST(MemoryKind, stack_of_the_first_thread_counts) {
  const int on_the_stack = 0;
  EXPECT_TRUE(is_on_heap_or_stack(reinterpret_cast<uint64_t>(&on_the_stack), sizeof on_the_stack));
}

// --- Numbers of ConnectX adapters, that people look for in each other's reports: "vendor err 129".

TEST(VendorErrors, are_those_of_connectx) {
  EXPECT_EQ(vendor_error(IBV_WC_SUCCESS), 0U);
  EXPECT_EQ(vendor_error(IBV_WC_RETRY_EXC_ERR), 0x81U);
  EXPECT_EQ(vendor_error(IBV_WC_RNR_RETRY_EXC_ERR), 0x87U);
  EXPECT_EQ(vendor_error(IBV_WC_REM_ACCESS_ERR), 0x88U);
}

TEST(Gids, are_the_same_bytes_in_packets) {
  wire::Address address{};
  for (size_t i = 0; i < address.size(); ++i) {
    address[i] = static_cast<uint8_t>(3 * i + 1);
  }
  const ibv_gid gid = gid_of(address);
  EXPECT_EQ(gid.raw[0], 1);
  EXPECT_EQ(gid.raw[15], 46);
  EXPECT_EQ(address_of(gid), address);
}

// --- Counts of events, and the events.

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

void make_nonblocking(int descriptor) { ASSERT_EQ(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0); }

TEST(EventCountTest, is_readable_while_events_wait) {
  EventCount count("events of a test");
  EXPECT_FALSE(is_readable(count.descriptor()));
  count.add();
  count.add();
  EXPECT_EQ(count.take(), 0);
  EXPECT_TRUE(is_readable(count.descriptor()));
  EXPECT_EQ(count.take(), 0);
  EXPECT_FALSE(is_readable(count.descriptor()));
  make_nonblocking(count.descriptor());
  EXPECT_EQ(count.take(), EAGAIN);
}

TEST(EventCountTest, takes_back_no_more_than_there_are_and_does_not_wait_for_others) {
  EventCount count("events of a test");
  for (int i = 0; i < 3; ++i) {
    count.add();
  }
  count.take_back(2);
  EXPECT_TRUE(is_readable(count.descriptor()));
  count.take_back(0);
  EXPECT_TRUE(is_readable(count.descriptor()));
  count.take_back(5);  // whatever the descriptor's mode
  EXPECT_FALSE(is_readable(count.descriptor()));
  EXPECT_EQ(fcntl(count.descriptor(), F_GETFL) & O_NONBLOCK, 0);
}

/// Waits until that child of ours sleeps. False: it has ended, or it takes too long.
bool await_sleep_of(pid_t child) {
  const uint64_t deadline = base::now_ns() + link::testing::kPatienceNs;
  char state = 'R';
  while (state != 'S' && state != 'Z' && base::now_ns() < deadline) {
    std::this_thread::yield();
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    std::getline(file, line);
    if (const size_t end_of_name = line.rfind(") "); end_of_name != std::string::npos) {
      state = line[end_of_name + 2];  // proc(5), field 3
    }
  }
  return state == 'S';
}

// The taker is a child, so that one that is never woken can be ended.
TEST(EventCountTest, taker_waits_for_an_event) {
  constexpr auto kPatienceS = static_cast<unsigned>(link::testing::kPatienceNs / 1'000'000'000);
  EventCount count("events of a test");
  link::testing::Child taker([&count] {
    alarm(2 * kPatienceS);  // ends it while it waits
    return count.take();
  });
  ASSERT_TRUE(await_sleep_of(taker.pid()));
  count.add();
  const int status = taker.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(is_readable(count.descriptor()));
}

ibv_async_event async_event(ibv_event_type type, void* element) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = static_cast<ibv_qp*>(element);
  return event;
}

std::vector<ibv_event_type> taken(AsyncEvents& events) {
  std::vector<ibv_event_type> types;
  for (ibv_async_event event{}; is_readable(events.descriptor());) {
    EXPECT_EQ(events.take(event, [](ibv_async_event&) {}), 0);
    types.push_back(event.event_type);
  }
  return types;
}

// ibv_get_async_event(3) says which member of `element` an event has. A port's number may look like an address.
TEST(AsyncEventsTest, events_of_an_object_go_with_it_and_those_of_ports_and_the_device_stay) {
  AsyncEvents events;
  int object = 0;
  using Types = std::vector<ibv_event_type>;
  const Types of_objects{
      IBV_EVENT_CQ_ERR,   IBV_EVENT_QP_FATAL,          IBV_EVENT_QP_REQ_ERR,         IBV_EVENT_QP_ACCESS_ERR,
      IBV_EVENT_COMM_EST, IBV_EVENT_SQ_DRAINED,        IBV_EVENT_PATH_MIG,           IBV_EVENT_PATH_MIG_ERR,
      IBV_EVENT_SRQ_ERR,  IBV_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED};
  const Types of_ports{IBV_EVENT_DEVICE_FATAL,      IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR,
                       IBV_EVENT_LID_CHANGE,        IBV_EVENT_PKEY_CHANGE, IBV_EVENT_SM_CHANGE,
                       IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_GID_CHANGE};
  for (const auto* types : {&of_objects, &of_ports}) {
    for (const ibv_event_type type : *types) {
      events.push(async_event(type, &object));
    }
  }
  events.push(async_event(IBV_EVENT_QP_FATAL, nullptr));  // another's
  events.forget(&object);
  Types left = of_ports;
  left.push_back(IBV_EVENT_QP_FATAL);
  EXPECT_EQ(taken(events), left);
  EXPECT_FALSE(is_readable(events.descriptor()));
}

TEST(AsyncEventsTest, more_than_there_is_room_for_at_first_come_in_order) {
  AsyncEvents events;
  constexpr int kCount = 600;
  for (int i = 0; i < kCount; ++i) {
    events.push(async_event(i % 2 == 0 ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE, nullptr));
  }
  const auto types = taken(events);
  ASSERT_EQ(types.size(), static_cast<size_t>(kCount));
  EXPECT_EQ(types[0], IBV_EVENT_PORT_ERR);
  EXPECT_EQ(types[kCount - 1], IBV_EVENT_PORT_ACTIVE);
}

TEST(AsyncEventsTest, nothing_is_taken_where_the_program_must_not_block) {
  AsyncEvents events;
  make_nonblocking(events.descriptor());
  ibv_async_event event{};
  EXPECT_EQ(events.take(event, [](ibv_async_event&) {}), EAGAIN);
}

}  // namespace
}  // namespace ringbolt::device
