#include "link/udp_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "link/udp_selector.h"

namespace ringbolt::link {
namespace {

/// What the kernel does (net/core/sock_reuseport.c): the last socket takes the place of the one that is closed.
class KernelOrder {
 public:
  void append(uint64_t inode) { inodes_.push_back(inode); }
  void close(size_t place) {
    inodes_[place] = inodes_.back();
    inodes_.pop_back();
  }
  const std::vector<uint64_t>& inodes() const { return inodes_; }

 private:
  std::vector<uint64_t> inodes_;
};

UdpOrder order_of(size_t count) {
  UdpOrder order;
  for (size_t i = 0; i < count; ++i) {
    order.append({static_cast<uint32_t>(i), 100, 1000 + i, true});
  }
  return order;
}

std::vector<uint64_t> inodes_in(const UdpOrder& order) {
  std::vector<uint64_t> inodes;
  for (const UdpMember& member : order.members()) {
    inodes.push_back(member.inode);
  }
  return inodes;
}

TEST(UdpOrder, follows_single_deaths) {
  for (size_t count = 1; count < 6; ++count) {
    for (size_t dead = 0; dead < count; ++dead) {
      UdpOrder order = order_of(count);
      KernelOrder kernel;
      for (size_t i = 0; i < count; ++i) {
        kernel.append(1000 + i);
      }
      EXPECT_FALSE(order.keep(kernel.inodes()));
      kernel.close(dead);
      EXPECT_TRUE(order.keep(kernel.inodes()));
      EXPECT_EQ(inodes_in(order), kernel.inodes());
      EXPECT_TRUE(order.is_sure());
    }
  }
}

TEST(UdpOrder, is_sure_where_several_deaths_leave_no_choice) {
  UdpOrder order = order_of(5);
  EXPECT_TRUE(order.keep({1000, 1001, 1004}));  // 1002 and 1003 died: 1004 can only be at 2
  EXPECT_EQ(inodes_in(order), (std::vector<uint64_t>{1000, 1001, 1004}));
  EXPECT_TRUE(order.is_sure());
  EXPECT_TRUE(order.keep({}));
  EXPECT_TRUE(order.members().empty());
}

TEST(UdpOrder, guesses_where_the_sequence_matters_and_takes_proof) {
  UdpOrder order = order_of(5);
  EXPECT_TRUE(order.keep({1000, 1003, 1004}));  // 1001 and 1002 died, in whatever order
  EXPECT_FALSE(order.is_sure());
  EXPECT_TRUE(order.members()[0].is_sure);
  const uint64_t guessed_last = order.members()[2].inode;
  const uint64_t guessed_first = order.members()[1].inode;
  EXPECT_FALSE(order.prove(1004, 3));  // no such place
  EXPECT_FALSE(order.prove(77, 1));    // no such socket
  EXPECT_TRUE(order.prove(guessed_last, 1));
  EXPECT_EQ(inodes_in(order), (std::vector<uint64_t>{1000, guessed_last, guessed_first}));
  EXPECT_TRUE(order.is_sure());  // one is left for one place
  EXPECT_FALSE(order.prove(guessed_last, 1));
}

RC_GTEST_PROP(UdpOrder, is_right_wherever_it_is_sure, ()) {
  UdpOrder order;
  KernelOrder kernel;
  uint64_t next_inode = 1;
  const auto rounds = *rc::gen::inRange(1, 30);
  for (int round = 0; round < rounds; ++round) {
    const auto joining = *rc::gen::inRange(0, 4);
    for (int i = 0; i < joining; ++i) {
      order.append({static_cast<uint32_t>(next_inode), 1, next_inode, true});
      kernel.append(next_inode++);
    }
    const auto dying = *rc::gen::inRange<size_t>(0, 4);
    for (size_t i = 0; i < dying && !kernel.inodes().empty(); ++i) {
      kernel.close(*rc::gen::inRange<size_t>(0, kernel.inodes().size()));
    }
    order.keep(kernel.inodes());
    if (!kernel.inodes().empty() && *rc::gen::inRange(0, 2) == 1) {
      const auto place = *rc::gen::inRange<size_t>(0, kernel.inodes().size());
      order.prove(kernel.inodes()[place], place);
    }
    RC_ASSERT(order.members().size() == kernel.inodes().size());
    for (size_t place = 0; place < order.members().size(); ++place) {
      RC_ASSERT(order.place_of(kernel.inodes()[place]).has_value());
      RC_ASSERT(!order.members()[place].is_sure || order.members()[place].inode == kernel.inodes()[place]);
    }
  }
  // Everybody proving his place ends every doubt.
  for (size_t place = 0; place < kernel.inodes().size(); ++place) {
    order.prove(kernel.inodes()[place], place);
  }
  RC_ASSERT(order.is_sure());
  RC_ASSERT(inodes_in(order) == kernel.inodes());
}

UdpOrderFile sample_file() {
  UdpOrderFile file;
  file.generation = 18'446'744'073'709'551'615U;
  file.families[0] = order_of(3);
  file.families[0].keep({1000, 1001});
  file.families[1] = order_of(5);
  file.families[1].keep({1000, 1003, 1004});
  return file;
}

TEST(UdpOrderFile, survives_the_text) {
  for (const UdpOrderFile& file : {UdpOrderFile{}, sample_file()}) {
    EXPECT_EQ(UdpOrderFile::parse(file.emit()), file) << file.emit();
    EXPECT_EQ(UdpOrderFile::parse(file.emit() + "ipv4 1 2 3 sure\nend\n"), file);  // the rest of an older text
  }
}

TEST(UdpOrderFile, refuses_what_it_did_not_write) {
  const std::string text = sample_file().emit();
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(UdpOrderFile::parse(text.substr(0, length))) << length;
  }
  const std::string head = "ringbolt-udp-order 1\ngeneration 1\n";
  ASSERT_TRUE(UdpOrderFile::parse(head + "end\n"));
  for (const char* lines :
       {"ipv5 1 2 3 sure\n", "ipv4 1 2 0 sure\n", "ipv4 -1 2 3 sure\n", "ipv4 1 2 3 maybe\n", "ipv4 1 2 3\n",
        "ipv4 1 2 3 sure more\n", "ipv4 1 2 99999999999999999999 sure\n", "ipv4 1 2 3 sure\nipv4 2 2 3 sure\n", "\n"}) {
    EXPECT_FALSE(UdpOrderFile::parse(head + lines + "end\n")) << lines;
  }
  EXPECT_FALSE(UdpOrderFile::parse("ringbolt-udp-order 2\ngeneration 1\nend\n"));
  EXPECT_FALSE(UdpOrderFile::parse("ringbolt-udp-order 1\ngeneration x\nend\n"));
}

/// What the kernel's interpreter makes of a program, for the instructions that ours have. `random` is the answer of
/// the kernel's random number.
uint32_t run(const std::vector<sock_filter>& program, uint32_t first_word, uint32_t second_word, uint32_t random) {
  uint32_t a = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        a = step.k == 0 ? first_word : step.k == 4 ? second_word : random;
        break;
      case BPF_ALU | BPF_K | BPF_AND:
        a &= step.k;
        break;
      case BPF_ALU | BPF_K | BPF_MOD:
        a %= step.k;
        break;
      case BPF_ALU | BPF_K | BPF_RSH:
        a >>= step.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += a == step.k ? step.jt : step.jf;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      case BPF_RET | BPF_A:
        return a;
      default:
        ADD_FAILURE() << "unknown code " << step.code;
        return 0;
    }
  }
  ADD_FAILURE() << "no answer";
  return 0;
}

TEST(UdpSelector, finds_the_place_of_a_slot) {
  const std::vector<UdpChoice> choices{{7, 0}, {1023, 1}, {0, 2}, {7, 3}};
  const auto program = udp_selector(choices, 4, 14);
  const auto place = [&](uint32_t qpn, uint32_t random = 0) { return run(program, 0x0440'ffff, qpn, random); };
  EXPECT_EQ(place(7U << 14U | 5U), 3U);  // the later one of two
  EXPECT_EQ(place(0xffffffU), 1U);
  EXPECT_EQ(place(0xff00'0000U | 7U << 14U), 3U);  // FECN, BECN and reserved bits stand above the QPN
  EXPECT_EQ(place(2), 2U);                         // slot 0
  EXPECT_EQ(place(0), 2U);
  EXPECT_EQ(place(1, 6), 2U);  // queue pair 1: anybody
  EXPECT_EQ(place(1, 7), 3U);
  EXPECT_EQ(place(8U << 14U, 5), 1U);  // nobody's slot
  EXPECT_EQ(run(program, kUdpProbeMagic, 9, 0), 9U);
}

TEST(UdpSelector, has_room_for_every_slot) {
  std::vector<UdpChoice> choices;
  for (uint32_t slot = 0; slot < 1024; ++slot) {
    choices.push_back({slot, 1023 - slot});
  }
  const auto program = udp_selector(choices, 1024, 14);
  EXPECT_LE(program.size(), static_cast<size_t>(BPF_MAXINSNS));
  for (uint32_t slot = 0; slot < 1024; ++slot) {
    EXPECT_EQ(run(program, 0, slot << 14U | 9U, 0), 1023 - slot);
  }
}

}  // namespace
}  // namespace ringbolt::link
