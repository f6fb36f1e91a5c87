#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "link/stream_link.h"

namespace ringbolt::link::stream_test {

using Bytes = std::vector<std::byte>;

/// Packet `number` of direction `side`: its bytes depend on both and on their place.
inline Bytes packet_of(uint64_t number, unsigned side, size_t length) {
  Bytes bytes(length);
  uint64_t state = (number + 1) * 0x9e3779b97f4a7c15U + side;
  for (size_t at = 0; at < length; at += sizeof state) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof state, length - at));
  }
  return bytes;
}

/// One direction of a stream that misbehaves: takes and gives fewer bytes than it could.
class Pipe {
 public:
  explicit Pipe(size_t capacity) : capacity_(capacity) {}
  size_t size() const { return bytes_.size(); }

  template <class Random>
  size_t write(std::span<const std::byte> from, Random& random) {
    const size_t most = std::min({from.size(), capacity_ - std::min(capacity_, bytes_.size()), up_to(random)});
    if (most == 0) {
      return 0;
    }
    bytes_.resize(bytes_.size() + most);
    std::memcpy(bytes_.data() + bytes_.size() - most, from.data(), most);
    return most;
  }
  template <class Random>
  size_t read(std::span<std::byte> into, Random& random) {
    const size_t most = std::min({into.size(), bytes_.size(), up_to(random)});
    if (most == 0) {
      return 0;
    }
    std::memcpy(into.data(), bytes_.data(), most);
    lose_head(most);
    return most;
  }

  void clear() { bytes_.clear(); }
  void lose_tail(size_t count) { bytes_.resize(bytes_.size() - std::min(count, bytes_.size())); }
  void lose_head(size_t count) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(std::min(count, bytes_.size())));
  }
  void flip(size_t at, std::byte mask) {
    if (at < bytes_.size()) {
      bytes_[at] ^= mask;
    }
  }
  void put_in_front(const Bytes& bytes) { bytes_.insert(bytes_.begin(), bytes.begin(), bytes.end()); }
  void double_tail(size_t count) {
    const Bytes tail(bytes_.end() - static_cast<std::ptrdiff_t>(std::min(count, bytes_.size())), bytes_.end());
    bytes_.insert(bytes_.end(), tail.begin(), tail.end());
  }
  Bytes copy() const { return bytes_; }

 private:
  template <class Random>
  static size_t up_to(Random& random) {
    constexpr std::array<size_t, 6> kSizes{1, 7, 41, 1000, 5000, 100'000};
    return random() % (kSizes[random() % kSizes.size()] + 1);
  }
  size_t capacity_;
  Bytes bytes_;
};

/// Both ends of a link, the streams between them, and packets both ways that must all arrive, once, in order.
class World {
 public:
  struct Scenario {
    uint64_t seed = 1;
    size_t rails = 1;
    uint32_t window_packets = 16;
    uint32_t window_frames = 8;
    size_t pipe_bytes = 20'000;
    int faults = 0;  ///< then the streams behave
    uint64_t packets = 100;
    size_t most_bytes = kMaxStreamPacketBytes;
  };
  explicit World(const Scenario& scenario) : scenario_(scenario), random_(scenario.seed) {
    for (unsigned side = 0; side < 2; ++side) {
      ends_.push_back(StreamLink(link_options(side)));
      for (size_t rail = 0; rail < scenario.rails; ++rail) {
        ends_[side].open(rail, now_ns_);
      }
    }
    // Into [0], out of [1], of each rail.
    pipes_.assign(scenario.rails, {Pipe(scenario.pipe_bytes), Pipe(scenario.pipe_bytes)});
    is_cut_.assign(scenario.rails, false);
    std::fill(sent_.begin(), sent_.end(), 0);
    lengths_.resize(2);
  }

  /// Until everything has arrived. False: it does not.
  bool run(int most_steps = 200'000) {
    for (int step = 0; step < most_steps; ++step) {
      if (arrived_[0] == scenario_.packets && arrived_[1] == scenario_.packets) {
        return true;
      }
      turn();
      if (::testing::Test::HasFailure()) {
        return false;
      }
    }
    return false;
  }

  void turn() {
    now_ns_ += random_() % 4 == 0 ? random_() % 30'000'000 : random_() % 200'000;
    if (faults_left_ > 0 && random_() % 40 == 0) {
      --faults_left_;
      misbehave(random_() % scenario_.rails);
    }
    for (size_t rail = 0; rail < scenario_.rails; ++rail) {
      if (is_cut_[rail] && random_() % 20 == 0) {
        is_cut_[rail] = false;
        ends_[0].open(rail, now_ns_);
        ends_[1].open(rail, now_ns_);
      }
    }
    move(random_() % 2);
  }

  void cut(size_t rail) {
    for (unsigned side = 0; side < 2; ++side) {
      ends_[side].close(rail);
      pipes_[rail][side].clear();
    }
    is_cut_[rail] = true;
  }

  StreamLink& end(unsigned side) { return ends_[side]; }
  Pipe& into(unsigned side, size_t rail) { return pipes_[rail][side]; }
  uint64_t arrived(unsigned side) const { return arrived_[side]; }
  uint64_t& now_ns() { return now_ns_; }

  /// One end does all that it can do now.
  void move(unsigned side) {
    StreamLink& self = ends_[side];
    while (sent_[side] < scenario_.packets && !self.reserve().empty()) {
      const size_t length =
          random_() % 3 == 0 ? scenario_.most_bytes - random_() % 3 : random_() % scenario_.most_bytes;
      const Bytes packet = packet_of(sent_[side]++, side, length);
      std::copy(packet.begin(), packet.end(), self.reserve().begin());
      self.commit(length);
      lengths_[side].push_back(length);
    }
    for (size_t rail = 0; rail < scenario_.rails; ++rail) {
      if (!is_cut_[rail]) {
        self.received(rail, pipes_[rail][side].read(self.input(rail), random_));
        take(side, rail);
      }
    }
    self.tick(now_ns_);
    self.distribute(now_ns_);
    for (size_t rail = 0; rail < scenario_.rails; ++rail) {
      if (!is_cut_[rail]) {
        self.written(rail, pipes_[rail][1 - side].write(self.output(rail), random_));
      }
    }
    ASSERT_LE(self.counters().kept_packets, scenario_.window_packets);
  }

 private:
  StreamLink::Options link_options(unsigned side) const {
    StreamLink::Options options;
    options.rails = scenario_.rails;
    options.incarnation = 2 * scenario_.seed + side + 1;
    options.seed = scenario_.seed;
    options.window_packets = scenario_.window_packets;
    options.window_frames = scenario_.window_frames;
    options.output_bytes = 40'000;
    options.greeting = Bytes(side * 40, static_cast<std::byte>(side));
    return options;
  }

  void take(unsigned side, size_t rail) {
    while (const auto packet = ends_[side].next_packet(rail, now_ns_)) {
      const uint64_t number = arrived_[side]++;
      ASSERT_LT(number, lengths_[1 - side].size()) << "seed " << scenario_.seed;
      const Bytes wanted = packet_of(number, 1 - side, lengths_[1 - side][number]);
      ASSERT_TRUE(std::ranges::equal(wanted, *packet)) << "seed " << scenario_.seed << " packet " << number;
    }
  }

  void misbehave(size_t rail) {
    Pipe& pipe = pipes_[rail][random_() % 2];
    switch (random_() % 8) {
      case 0:  // unplugged
        return cut(rail);
      case 1: {  // the same, and what one end had written comes up again in front of the next stream
        const Bytes leftovers = pipe.copy();
        cut(rail);
        return pipe.put_in_front(leftovers);
      }
      case 2:  // suspended: what was queued is gone, and nobody says so
        pipes_[rail][0].clear();
        return pipes_[rail][1].clear();
      case 3:
        return pipe.lose_tail(random_() % 6000);
      case 4:
        return pipe.lose_head(random_() % 6000);
      case 5:
        return pipe.flip(pipe.size() == 0 ? 0 : random_() % pipe.size(), static_cast<std::byte>(1 + random_() % 255));
      case 6: {
        Bytes garbage(random_() % 5000);
        std::ranges::generate(garbage, [&] { return static_cast<std::byte>(random_()); });
        return pipe.put_in_front(garbage);
      }
      default:
        return pipe.double_tail(random_() % 6000);
    }
  }

  Scenario scenario_;
  std::mt19937_64 random_;
  uint64_t now_ns_ = 1'000'000'000;
  int faults_left_ = scenario_.faults;
  std::vector<StreamLink> ends_;
  std::vector<std::array<Pipe, 2>> pipes_;
  std::vector<bool> is_cut_;
  std::array<uint64_t, 2> sent_{};
  std::array<uint64_t, 2> arrived_{};
  std::vector<std::vector<size_t>> lengths_;
};

/// Two ends with one perfect stream; what is in the way can be looked at.
class Couple {
 public:
  explicit Couple(size_t rails = 1, uint32_t window_packets = 4) {
    for (uint64_t side = 0; side < 2; ++side) {
      ends.push_back(make(rails, 10 + side, window_packets));
      for (size_t rail = 0; rail < rails; ++rail) {
        ends[side].open(rail, now);
      }
    }
  }
  static StreamLink make(size_t rails, uint64_t incarnation, uint32_t window_packets = 4) {
    StreamLink::Options options;
    options.rails = rails;
    options.incarnation = options.seed = incarnation;
    options.window_packets = window_packets;
    return StreamLink(options);
  }
  /// Moves what there is both ways on this rail until nothing moves; all packets that arrive.
  std::vector<Bytes> exchange(size_t rail = 0) {
    std::vector<Bytes> packets;
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (size_t side = 0; side < 2; ++side) {
        ends[side].distribute(now);
        has_moved |= carry(ends[side], ends[1 - side], rail, packets);
      }
    }
    return packets;
  }
  /// The stream ends, with what was in it, and another one takes its place.
  void reopen(size_t rail = 0) {
    for (StreamLink& end : ends) {
      end.close(rail);
    }
    for (StreamLink& end : ends) {
      end.open(rail, now);
    }
  }
  bool carry(StreamLink& from, StreamLink& to, size_t rail, std::vector<Bytes>& packets, size_t most = SIZE_MAX) {
    const auto bytes = from.output(rail);
    const auto room = to.input(rail);
    const size_t count = std::min({bytes.size(), room.size(), most});
    std::copy_n(bytes.begin(), count, room.begin());
    from.written(rail, count);
    to.received(rail, count);
    while (const auto packet = to.next_packet(rail, now)) {
      packets.emplace_back(packet->begin(), packet->end());
    }
    return count != 0;
  }
  static void send(StreamLink& link, std::byte value) {
    ASSERT_FALSE(link.reserve().empty());
    link.reserve()[0] = value;
    link.commit(1);
  }

  std::vector<StreamLink> ends;
  uint64_t now = 1;
};

}  // namespace ringbolt::link::stream_test
