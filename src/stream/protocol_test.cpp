#include "stream/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <vector>

namespace ringbolt::stream {
namespace {

constexpr uint32_t kMib = 1U << 20U;
constexpr uint64_t kSecond = 1'000'000'000;

ProtocolSettings settings_of(Role role, uint32_t rx_length = 65536) {
  return {.role = role, .rx_address = 0x10000, .rx_length = rx_length, .rx_key = 7};
}

ControlBytes registration(uint64_t address, uint32_t length, uint32_t key = 0xa1b2) {
  return ControlMessage{.opcode = Opcode::register_xfer_memory, .address = address, .length = length, .key = key}
      .emit();
}

/// A connected end whose announcement was posted and has completed.
Protocol connected(Role role, uint32_t rx_length = 65536) {
  Protocol end(settings_of(role, rx_length));
  end.established(1);
  EXPECT_TRUE(end.next_command());
  end.finish_command();
  return end;
}

/// That, with the peer's buffer announced.
Protocol ready(Role role, uint32_t tx_length = 4096) {
  Protocol end = connected(role);
  end.take_command(registration(0x5000, tx_length), 1);
  EXPECT_TRUE(end.wants_sending_buffer());
  end.begin_sending();
  return end;
}

/// Says the command, and why the connection ended then.
CloseReason after_command(Protocol& end, std::span<const std::byte> bytes) {
  end.take_command(bytes, 2);
  return end.reason();
}

TEST(Protocol, announces_its_buffer_when_established_and_not_before) {
  Protocol end(settings_of(Role::client, kMib));
  EXPECT_FALSE(end.has_command());
  end.established(5);
  const auto command = end.next_command();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->bytes, registration(0x10000, kMib, 7));
  EXPECT_FALSE(end.next_command());
  end.established(6);  // once is enough
  EXPECT_FALSE(end.next_command());
}

TEST(Protocol, ping_and_pong_as_a_stock_server_sends_them) {
  Protocol client = ready(Role::client, kMib);
  client.fill(14);
  const auto write = client.flush();
  ASSERT_TRUE(write);
  EXPECT_EQ(*write, (Write{.remote_address = 0x5000,
                           .remote_key = 0xa1b2,
                           .offset = 0,
                           .length = 14,
                           .has_immediate = true,
                           .immediate = 14,
                           .is_signaled = false,
                           .number = 1}));
  client.take_data(7, 7, 2);
  EXPECT_EQ(client.unread(), 7U);
  client.consume(7);
  EXPECT_EQ(client.rx_offset(), 7U);
  EXPECT_FALSE(client.flush()) << "nothing is left to send";
}

TEST(Protocol, writer_waits_for_the_peers_announcement) {
  Protocol end = connected(Role::server);
  EXPECT_EQ(end.room(), 0U);
  end.take_command(registration(0x5000, 4096), 1);
  EXPECT_EQ(end.room(), 0U) << "no memory to copy into yet";
  end.begin_sending();
  EXPECT_EQ(end.room(), 4096U);
}

TEST(Protocol, small_writes_leave_as_one_message) {
  Protocol end = ready(Role::client);
  for (const uint32_t count : {3U, 5U, 100U}) {
    end.fill(count);
  }
  const auto write = end.flush();
  ASSERT_TRUE(write);
  EXPECT_EQ(write->length, 108U);
  EXPECT_EQ(write->immediate, 108U);
  EXPECT_EQ(end.statistics().messages_sent, 1U);
}

TEST(Protocol, buffer_is_filled_to_its_last_byte_then_stalls_until_announced) {
  Protocol end = ready(Role::client);
  end.fill(4095);
  EXPECT_TRUE(end.flush());
  EXPECT_EQ(end.room(), 1U);
  end.note_stall(10);
  end.fill(1);
  const auto last = end.flush();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->remote_address, 0x5000U + 4095);
  EXPECT_EQ(end.room(), 0U);
  end.note_stall(100);
  end.note_stall(150);
  end.take_command(registration(0x9000, 4096, 3), 250);  // another address and key are allowed
  EXPECT_EQ(end.room(), 4096U);
  EXPECT_EQ(end.tx_offset(), 0U);
  EXPECT_EQ(end.statistics().stalls, 1U);
  EXPECT_EQ(end.statistics().stall_ns, 150U);
  end.fill(1);
  EXPECT_EQ(end.flush()->remote_address, 0x9000U);
}

TEST(Protocol, announces_anew_after_exactly_all_of_its_buffer_was_consumed) {
  Protocol end = connected(Role::client, 100);
  end.take_data(100, 100, 1);
  end.consume(99);
  EXPECT_FALSE(end.has_command());
  end.consume(1);
  const auto command = end.next_command();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->bytes, registration(0x10000, 100, 7)) << "same address, length and key";
  EXPECT_EQ(end.rx_offset(), 0U);
  end.take_data(100, 100, 1);
  EXPECT_EQ(end.unread(), 100U);
}

TEST(Protocol, second_buffer_is_announced_as_soon_as_the_first_is_full) {
  Protocol end({.role = Role::client, .rx_address = 0x10000, .rx_length = 100, .rx_buffers = 2, .rx_key = 7});
  end.established(1);
  EXPECT_EQ(end.next_command()->bytes, registration(0x10000, 100, 7));
  end.take_data(99, 99, 1);
  EXPECT_FALSE(end.has_command());
  end.take_data(1, 1, 1);
  const auto second = end.next_command();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->bytes, registration(0x10000 + 100, 100, 7));
  end.take_data(100, 100, 1);
  EXPECT_FALSE(end.has_command()) << "both are full";
  EXPECT_EQ(end.unread(), 200U);
  EXPECT_EQ(end.contiguous(), 200U);
  end.consume(99);
  EXPECT_FALSE(end.has_command()) << "one byte of the first is left";
  end.consume(51);
  const auto third = end.next_command();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->bytes, registration(0x10000, 100, 7));
  end.take_data(60, 60, 1);
  EXPECT_EQ(end.unread(), 110U);
  EXPECT_EQ(end.rx_offset(), 150U);
  EXPECT_EQ(end.contiguous(), 50U) << "the rest lies at the ring's beginning";
  end.consume(110);
  EXPECT_EQ(end.rx_offset(), 60U);
  end.take_data(41, 0, 1);
  EXPECT_EQ(end.reason(), CloseReason::imm_overrun);
}

TEST(Protocol, plain_segments_are_counted_by_the_next_immediate) {
  Protocol end = connected(Role::server);
  end.take_data(512, 128, 1);  // [WRITE 128][WRITE 256][WIMM 128, 512]
  EXPECT_EQ(end.unread(), 512U);
  EXPECT_EQ(end.statistics().messages_received, 1U);
}

TEST(Protocol, sends_segments_of_the_programs_memory_with_one_immediate) {
  Protocol end = ready(Role::client);
  const auto first = end.flush_direct(128, false);
  const auto second = end.flush_direct(256, false);
  const auto last = end.flush_direct(128, true);
  ASSERT_TRUE(first && second && last);
  EXPECT_FALSE(first->has_immediate || second->has_immediate);
  EXPECT_EQ(second->remote_address, 0x5000U + 128);
  EXPECT_EQ(last->immediate, 512U);
  EXPECT_TRUE(last->is_signaled) << "the program wants to know when its memory is free";
}

TEST(Protocol, a_segment_at_the_end_of_the_buffer_tells_the_peer) {
  Protocol end = ready(Role::client);
  const auto write = end.flush_direct(5000, true);
  ASSERT_TRUE(write);
  EXPECT_EQ(write->length, 4096U);
  EXPECT_EQ(write->immediate, 4096U);
  EXPECT_TRUE(write->is_signaled) << "its program waits for that, too";
  EXPECT_FALSE(end.flush_direct(904, true));
}

TEST(Protocol, early_announcement_begins_anew_and_is_counted) {
  Protocol end = ready(Role::server);
  end.fill(10);
  EXPECT_TRUE(end.flush());
  end.fill(6);
  end.take_command(registration(0x5000, 4096), 2);
  EXPECT_EQ(end.statistics().early_announcements, 1U);
  const auto move = end.take_move();
  ASSERT_TRUE(move);
  EXPECT_EQ(move->from, 10U);
  EXPECT_EQ(move->count, 6U);
  EXPECT_EQ(end.room(), 4090U);
  EXPECT_EQ(end.flush()->remote_address, 0x5000U);
}

TEST(Protocol, queue_of_writes_has_a_bound_and_always_something_that_completes) {
  Protocol end = ready(Role::client, kMib);
  uint64_t last_signaled = 0;
  for (uint32_t i = 0; i < SendSpace::kDepth; ++i) {
    end.fill(1);
    const auto write = end.flush();
    ASSERT_TRUE(write);
    last_signaled = write->is_signaled ? write->number : last_signaled;
    EXPECT_LT(write->number - last_signaled, SendSpace::kSignalEvery);
  }
  end.fill(1);
  EXPECT_FALSE(end.flush()) << "one too many";
  end.finish_write(last_signaled);
  EXPECT_TRUE(end.flush());
}

TEST(Protocol, server_sends_a_keepalive_every_three_seconds_and_a_client_none) {
  Protocol server = connected(Role::server);
  EXPECT_EQ(server.next_tick_ns(), 1 + 3 * kSecond);
  server.tick(3 * kSecond);
  EXPECT_FALSE(server.has_command());
  server.tick(1 + 3 * kSecond);
  const auto command = server.next_command();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->bytes, ControlMessage{.opcode = Opcode::keepalive}.emit());
  EXPECT_EQ(server.next_tick_ns(), 1 + 6 * kSecond);
  const Protocol client = connected(Role::client);
  EXPECT_EQ(client.next_tick_ns(), UINT64_MAX);
}

TEST(Protocol, keepalives_do_not_pile_up_on_a_peer_that_takes_none) {
  Protocol server = connected(Role::server);
  for (uint64_t i = 1; i <= 2000; ++i) {
    server.tick(1 + i * 3 * kSecond);
    while (server.next_command()) {
    }
  }
  EXPECT_TRUE(server.is_alive());
  EXPECT_EQ(server.statistics().keepalives_sent, Protocol::kMostKeepalives);
  EXPECT_EQ(server.statistics().keepalives_skipped, 2000 - Protocol::kMostKeepalives);
  server.finish_command();
  server.tick(1 + 2001 * 3 * kSecond);
  EXPECT_TRUE(server.has_command());
}

TEST(Protocol, keepalives_of_an_idle_day_are_taken) {
  Protocol client = connected(Role::client);
  const auto keepalive = ControlMessage{.opcode = Opcode::keepalive}.emit();
  for (uint64_t i = 1; i <= 28800; ++i) {
    client.take_command(keepalive, i * 3 * kSecond);
  }
  EXPECT_TRUE(client.is_alive());
  EXPECT_EQ(client.statistics().keepalives_received, 28800U);
}

TEST(Protocol, server_answers_the_question_for_features) {
  Protocol server = connected(Role::server);
  const ControlMessage question{.opcode = Opcode::get_server_feature, .select = 9, .features = 5};
  server.take_command(question.emit(), 2);
  const auto answer = server.next_command();
  ASSERT_TRUE(answer);
  EXPECT_EQ(ControlMessage::parse(answer->bytes), (ControlMessage{.opcode = Opcode::get_server_feature, .select = 9}));
  server.take_command(ControlMessage{.opcode = Opcode::set_client_feature}.emit(), 2);
  EXPECT_TRUE(server.is_alive());
  EXPECT_FALSE(server.has_command()) << "a choice has no answer";
}

TEST(Protocol, client_takes_the_answer_to_its_own_question_once) {
  Protocol client = connected(Role::client);
  client.ask_features();
  EXPECT_TRUE(client.next_command());
  const auto answer = ControlMessage{.opcode = Opcode::get_server_feature, .features = 0}.emit();
  EXPECT_EQ(after_command(client, answer), CloseReason::none);
  EXPECT_EQ(client.features(), 0U);
  EXPECT_EQ(after_command(client, answer), CloseReason::bad_opcode);
}

TEST(Protocol, client_is_told_features_by_nobody) {
  for (const Opcode opcode : {Opcode::get_server_feature, Opcode::set_client_feature}) {
    Protocol client = connected(Role::client);
    EXPECT_EQ(after_command(client, ControlMessage{.opcode = opcode}.emit()), CloseReason::bad_opcode);
  }
}

// Section 5, row by row.

TEST(ProtocolInput, command_of_another_length) {
  const std::vector<std::byte> bytes(33);
  for (const size_t length : {0U, 31U, 33U}) {
    Protocol end = connected(Role::server);
    EXPECT_EQ(after_command(end, std::span(bytes).first(length)), CloseReason::bad_command_length) << length;
  }
}

TEST(ProtocolInput, unknown_opcode) {
  ControlBytes bytes{};
  bytes[1] = std::byte{4};
  Protocol end = connected(Role::server);
  EXPECT_EQ(after_command(end, bytes), CloseReason::bad_opcode);
}

TEST(ProtocolInput, first_announcement) {
  struct Case {
    uint64_t address;
    uint32_t length;
    CloseReason reason;
  };
  for (const Case& one :
       {Case{0x1000, 0, CloseReason::bad_rx_length}, Case{0x1000, 1, CloseReason::none},
        Case{0x1000, 16 * kMib, CloseReason::none}, Case{0x1000, 16 * kMib + 1, CloseReason::bad_rx_length},
        Case{0x1000, UINT32_MAX, CloseReason::bad_rx_length},
        Case{0xfffffffffffff000, kMib, CloseReason::bad_rx_length}, Case{UINT64_MAX - kMib, kMib, CloseReason::none}}) {
    Protocol end = connected(Role::server);
    EXPECT_EQ(after_command(end, registration(one.address, one.length)), one.reason)
        << one.address << "+" << one.length;
  }
}

TEST(ProtocolInput, later_announcement_of_another_length) {
  for (const uint32_t length : {2 * kMib, kMib - 1, 0U}) {
    Protocol end = ready(Role::server, kMib);
    EXPECT_EQ(after_command(end, registration(0x5000, length)), CloseReason::rx_length_changed) << length;
  }
}

TEST(ProtocolInput, announcements_that_come_too_early_are_not_endless) {
  Protocol end = ready(Role::server);
  for (int i = 0; i < 100'000 && end.is_alive(); ++i) {
    end.take_command(registration(0x5000, 4096), 2);
  }
  EXPECT_EQ(end.reason(), CloseReason::command_flood);
}

TEST(ProtocolInput, immediate_beyond_the_buffer) {
  Protocol end = connected(Role::server);
  end.take_data(0x00010001, 1, 1);
  EXPECT_EQ(end.reason(), CloseReason::imm_overrun);
  EXPECT_EQ(end.unread(), 0U);
}

TEST(ProtocolInput, immediate_whose_sum_with_the_offset_wraps) {
  Protocol end = connected(Role::server);
  end.take_data(0x10, 0x10, 1);
  end.take_data(0xfffffff8, 0, 1);
  EXPECT_EQ(end.reason(), CloseReason::imm_overrun);
  EXPECT_EQ(end.unread(), 0x10U);
}

TEST(ProtocolInput, immediate_before_our_announcement) {
  Protocol end(settings_of(Role::server));
  end.take_data(1, 1, 1);
  EXPECT_EQ(end.reason(), CloseReason::imm_overrun);
}

TEST(ProtocolInput, immediate_exactly_to_the_end_then_one_more) {
  Protocol end = connected(Role::server);
  end.take_data(65536, 65536, 1);
  EXPECT_TRUE(end.is_alive());
  end.take_data(1, 1, 1);
  EXPECT_EQ(end.reason(), CloseReason::imm_overrun);
}

TEST(ProtocolInput, immediate_smaller_than_the_message) {
  Protocol end = connected(Role::server);
  end.take_data(7, 8, 1);
  EXPECT_EQ(end.reason(), CloseReason::imm_underrun);
}

TEST(ProtocolInput, empty_messages_are_nothing_until_they_flood) {
  Protocol end = connected(Role::server);
  for (int i = 0; i < 100; ++i) {
    end.take_data(0, 0, 1);
  }
  EXPECT_TRUE(end.is_alive());
  EXPECT_EQ(end.unread(), 0U);
  for (int i = 0; i < 10'000 && end.is_alive(); ++i) {
    end.take_data(0, 0, 1);
  }
  EXPECT_EQ(end.reason(), CloseReason::imm_flood);
}

TEST(ProtocolInput, feature_that_was_not_offered) {
  Protocol end = connected(Role::server);
  const ControlMessage choice{.opcode = Opcode::set_client_feature, .features = 1};
  EXPECT_EQ(after_command(end, choice.emit()), CloseReason::feature);
  EXPECT_FALSE(end.has_command()) << "no answer to a choice, not even to refuse it";
}

TEST(ProtocolInput, questions_of_a_peer_that_takes_no_answers) {
  Protocol end = connected(Role::server);
  const auto question = ControlMessage{.opcode = Opcode::get_server_feature}.emit();
  for (uint32_t i = 0; i < Protocol::kCommandSlots; ++i) {
    EXPECT_EQ(after_command(end, question), CloseReason::none);
    EXPECT_TRUE(end.next_command());
  }
  EXPECT_EQ(after_command(end, question), CloseReason::out_of_send_slots);
}

TEST(ProtocolInput, flood_of_commands) {
  for (const Opcode opcode : {Opcode::get_server_feature, Opcode::set_client_feature, Opcode::keepalive}) {
    Protocol end = connected(Role::server);
    for (int i = 0; i < 10'000 && end.is_alive(); ++i) {
      end.take_command(ControlMessage{.opcode = opcode}.emit(), 2);
      while (end.next_command()) {
        end.finish_command();
      }
    }
    EXPECT_EQ(end.reason(), CloseReason::command_flood);
  }
}

TEST(ProtocolInput, first_reason_stands_and_what_came_can_be_read) {
  Protocol end = connected(Role::server);
  end.take_data(5, 5, 1);
  end.end(CloseReason::peer_closed);
  end.take_data(70000, 0, 1);
  end.end(CloseReason::local);
  EXPECT_EQ(end.reason(), CloseReason::peer_closed);
  EXPECT_EQ(end.unread(), 5U);
  end.consume(5);
  EXPECT_EQ(end.room(), 0U);
  EXPECT_FALSE(end.has_command());
}

TEST(CloseReason, every_reason_has_a_name_of_its_own) {
  for (size_t i = 0; i < kCloseReasons; ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(name_of(static_cast<CloseReason>(i)), name_of(static_cast<CloseReason>(j)));
    }
  }
  EXPECT_EQ(name_of(CloseReason::no_resources), "no-resources");
  EXPECT_EQ(name_of(CloseReason::bad_command_length), "bad-command-length");
}

}  // namespace
}  // namespace ringbolt::stream
