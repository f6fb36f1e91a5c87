#pragma once

// The measured loops, the same code for every peer. A peer is a Channel:
//   unsigned rank, ranks; Arena arena;
//   expect(n)       make ready to take one message of n bytes into arena.incoming(); may do nothing
//   send(n)         start sending n bytes of arena.outgoing() to the other (or next) rank
//   receive(n)      wait until the expected message has come
//   flush()         wait until arena.outgoing() may be rewritten
//   progress()      what the peer must call while it waits for memory; may do nothing
// and, where the peer has one-sided operations (the other rank's arena is laid out like ours):
//   put(value)      store 8 bytes into the other's slot 1
//   get(n)          read n bytes of the other's outgoing() into our incoming(), wait
//   fetch_add()     add 1 to the other's slot 2, return what it was
// and, where it streams small messages:
//   stream_out(count, op) / stream_in(count, op)   op is "rate_send" or "rate_write"

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "base/cpu_pause.h"
#include "control.h"
#include "payload.h"
#include "samples.h"
#include "turn_page.h"

namespace ringbolt::bench {

/// Gathers what a block needs besides the channel.
/// No loop here has a deadline of its own: serve() ends the process (kBlockDeadlineS), and the driver tells of it.
struct Block {
  const Command& command;
  TurnPage& page;
  uint64_t round;  ///< how many blocks these ranks have begun, this one included
  Samples& samples;
};

/// SEND/RECV there and back. Timed on rank 0: from posting to having read the answer. Both payloads are rewritten
/// outside of the timed part: rank 1 prepares its answer before the question comes.
template <class Channel>
std::string ping_pong(Channel& channel, const Block& block) {
  const auto [operation, size, iterations, is_touched] = block.command;
  const unsigned self = channel.rank;
  const unsigned other = 1 - self;
  channel.expect(size);
  fill(channel.arena.outgoing(), size, seed_of(self, 0));
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(iterations);
  for (uint64_t i = 0; i < iterations; ++i) {
    const bool is_last = i + 1 == iterations;
    if (self == 0) {
      const uint64_t start = now_ticks();
      channel.send(size);
      channel.receive(size);
      if (is_touched) {
        expect_holds(channel.arena.incoming(), size, seed_of(other, i));
      }
      channel.flush();
      block.samples.add(settled_ticks() - start);
    } else {
      channel.receive(size);
      if (is_touched) {
        expect_holds(channel.arena.incoming(), size, seed_of(other, i));
      }
      channel.send(size);
    }
    if (!is_last) {
      channel.expect(size);
    }
    if (self == 1) {
      channel.flush();
    }
    if (is_touched && !is_last) {
      fill(channel.arena.outgoing(), size, seed_of(self, i + 1));
    }
  }
  return block.samples.latency_report(2);
}

/// Waits until `word` has the value; a plain load per turn, and now and then the peer's own progress.
template <class Channel>
void wait_for_word(Channel& channel, std::byte* word, uint64_t value) {
  std::atomic_ref<uint64_t> cell(*reinterpret_cast<uint64_t*>(word));
  constexpr unsigned kLoadsPerProgress = 64;
  for (unsigned loads = 0; cell.load(std::memory_order_acquire) != value; ++loads) {
    if (loads % kLoadsPerProgress == kLoadsPerProgress - 1) {
      channel.progress();
    }
  }
}

/// One-sided 8-byte stores there and back; each side polls its own memory.
template <class Channel>
std::string put_pong(Channel& channel, const Block& block) {
  const unsigned self = channel.rank;
  std::byte* const landing = channel.arena.slot(1);
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(block.command.iterations);
  for (uint64_t i = 0; i < block.command.iterations; ++i) {
    const uint64_t start = now_ticks();
    if (self == 0) {
      channel.put(seed_of(0, i));
      wait_for_word(channel, landing, seed_of(1, i));
      block.samples.add(settled_ticks() - start);
    } else {
      wait_for_word(channel, landing, seed_of(0, i));
      channel.put(seed_of(1, i));
    }
  }
  return block.samples.latency_report(2);
}

/// One look of a rank that waits for its turn. With a pause, whatever a channel's progress() takes: who loads a word
/// again and again without one delays the other core's load of a line beside it by 130 ns (cores that are far apart).
template <class Channel>
void spin(Channel& channel) {
  channel.progress();
  base::cpu_pause();
}

/// Rank 0 reads what rank 1 has just rewritten. Timed: from posting to having looked at every byte.
template <class Channel>
std::string get_rewritten(Channel& channel, const Block& block) {
  const auto [operation, size, iterations, is_touched] = block.command;
  if (channel.rank == 0) {
    block.page.turn.store(0);
  }
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(iterations);
  for (uint64_t i = 0; i < iterations; ++i) {
    if (channel.rank == 0) {
      block.page.wait_for_turn(2 * i + 1);
      const uint64_t start = now_ticks();
      channel.get(size);
      expect_holds(channel.arena.incoming(), size, seed_of(1, i));
      block.samples.add(settled_ticks() - start);
      block.page.turn.store(2 * i + 2, std::memory_order_release);
    } else {
      fill(channel.arena.outgoing(), size, seed_of(1, i));
      block.page.turn.store(2 * i + 1, std::memory_order_release);
      while (block.page.turn.load(std::memory_order_acquire) != 2 * i + 2) {
        spin(channel);
      }
    }
  }
  return block.samples.latency_report(1);
}

/// Rank 0 adds to a word of rank 1, which spins meanwhile.
template <class Channel>
std::string fetch_adds(Channel& channel, const Block& block) {
  const uint64_t iterations = block.command.iterations;
  if (channel.rank == 0) {
    block.page.turn.store(0);
  }
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(iterations);
  if (channel.rank == 1) {
    while (block.page.turn.load(std::memory_order_acquire) != 1) {
      spin(channel);
    }
    return block.samples.latency_report(1);
  }
  uint64_t before = channel.fetch_add();
  for (uint64_t i = 0; i < iterations; ++i) {
    const uint64_t start = now_ticks();
    const uint64_t old = channel.fetch_add();
    block.samples.add(settled_ticks() - start);
    if (old != ++before) {
      throw std::runtime_error(fmt::format("fetch-and-add {} returned {} instead of {}", i, old, before));
    }
  }
  block.page.turn.store(1, std::memory_order_release);
  return block.samples.latency_report(1);
}

/// Every rank sends to the next and receives from the one before it, in steps; each rank times its own steps.
template <class Channel>
std::string ring(Channel& channel, const Block& block) {
  const auto [operation, size, iterations, is_touched] = block.command;
  const unsigned left = (channel.rank + channel.ranks - 1) % channel.ranks;
  channel.expect(size);
  fill(channel.arena.outgoing(), size, seed_of(channel.rank, 0));
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(iterations);
  for (uint64_t i = 0; i < iterations; ++i) {
    const uint64_t start = now_ticks();
    channel.send(size);
    channel.receive(size);
    expect_holds(channel.arena.incoming(), size, seed_of(left, i));
    channel.flush();
    block.samples.add(settled_ticks() - start);
    if (i + 1 < iterations) {
      channel.expect(size);
      fill(channel.arena.outgoing(), size, seed_of(channel.rank, i + 1));
    }
  }
  return block.samples.latency_report(1);
}

/// A stream of 8-byte messages from rank 0 to rank 1; rank 0 times until rank 1 has them all.
template <class Channel>
std::string stream(Channel& channel, const Block& block) {
  const auto& [operation, size, iterations, is_touched] = block.command;
  if (channel.rank == 1) {
    channel.stream_in_begin(iterations, operation);
  }
  block.page.arrive(channel.ranks, block.round);
  block.samples.begin(0);
  if (channel.rank == 0) {
    channel.stream_out(iterations, operation);
  } else {
    channel.stream_in(iterations, operation);
  }
  return block.samples.rate_report(iterations);
}

/// Runs one block; throws std::runtime_error when the peer does not have the operation or gives wrong data.
template <class Channel>
std::string run_block(Channel& channel, const Block& block) {
  const std::string& operation = block.command.operation;
  if (operation == "send") {
    return ping_pong(channel, block);
  }
  if constexpr (requires { channel.put(0); }) {
    if (operation == "write") {
      return put_pong(channel, block);
    }
    if (operation == "read") {
      return get_rewritten(channel, block);
    }
    if (operation == "fetch_add") {
      return fetch_adds(channel, block);
    }
  }
  if constexpr (requires { channel.stream_out(0, operation); }) {
    if (operation == "rate_send" || operation == "rate_write") {
      return stream(channel, block);
    }
  }
  if (operation == "ring") {
    return ring(channel, block);
  }
  throw std::runtime_error(fmt::format("operation {} is not offered by this peer", operation));
}

}  // namespace ringbolt::bench
