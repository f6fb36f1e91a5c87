#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

/// As drive, for so long.
void drive_for(std::vector<Sender>& senders, std::vector<Receiver>& receivers, double seconds) {
  const uint64_t begin = now_ns();
  while (seconds_since(begin) < seconds) {
    bool moved = false;
    for (Sender& sender : senders) {
      moved = sender.step() || moved;
    }
    for (Receiver& receiver : receivers) {
      moved = receiver.step() || moved;
    }
    if (!moved) {
      yield_now();
    }
  }
}

/// The other one of the pair: of --pair, or of ranks 0 and 1. -1: this rank is in none, and has only to be there.
int partner_of(const Rank& rank) {
  const auto [a, b] = rank.options().pair.value_or(std::pair{0, 1});
  return rank.id() == a ? b : rank.id() == b ? a : -1;
}

std::vector<int> peers_to_stream_with(const Rank& rank) {
  if (!rank.options().pair) {
    return peers_of(rank);
  }
  const int partner = partner_of(rank);
  return partner < 0 ? std::vector<int>{} : std::vector<int>{partner};
}

/// For tests that cut cables meanwhile: whatever the network does, all arrives, once and in order.
void stream(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_to_stream_with(rank), 1);
  const Stream endless{.sizes = {1U << 20U, 262'144, 8, 65'537, 524'288, 0, 4096, 131'072}, .count = UINT64_MAX};
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  for (const Link& link : links) {
    senders.emplace_back(rank, link, endless);
    receivers.emplace_back(rank, link, endless);
  }
  rank.barrier();
  rank.step("stream");
  if (links.empty()) {
    rank.barrier();
    return;
  }
  const uint64_t begin = now_ns();
  std::vector<uint64_t> counts;
  rank.progress().run([&] {
    drive_for(senders, receivers, rank.options().seconds);
    for (Sender& sender : senders) {
      counts.push_back(sender.stop_soon());
    }
  });
  // How many it will be: receivers may have posted so many more, and each must get its message.
  for (size_t i = 0; i < links.size(); ++i) {
    rank.post(links[i].peer, std::to_string(counts[i]));
  }
  for (size_t i = 0; i < links.size(); ++i) {
    receivers[i].set_count(std::stoull(rank.take(links[i].peer)));
  }
  rank.step("end of the stream");
  rank.progress().run([&] { drive(senders, receivers, 30); });
  const double taken = seconds_since(begin);
  for (size_t i = 0; i < links.size(); ++i) {
    senders[i].end();
    receivers[i].end();
    const auto bytes = static_cast<double>(rank.board().received_bytes[static_cast<size_t>(links[i].peer)].load());
    std::array<char, 96> row{};
    std::snprintf(row.data(), row.size(), "%d>%d %llu messages, %.6f GB, %.3f GB/s", links[i].peer, rank.id(),
                  static_cast<unsigned long long>(receivers[i].completed()), bytes * 1e-9, bytes * 1e-9 / taken);
    rank.row(row.data());
  }
  rank.barrier();
  close_links(rank, links);
}

/// One comm each way between two ranks, with memory, as the progress thread uses it. The first of the pair sends what
/// goes one way.
struct Track {
  Rank& rank;
  const Link& link;
  Buffer buffer{8 * (4U << 20U)};
  Buffer arrivals{8 * (4U << 20U)};
  void* send_region = nullptr;
  void* receive_region = nullptr;

  [[nodiscard]] bool is_first() const { return rank.id() == rank.options().pair.value_or(std::pair{0, 1}).first; }

  /// Waits for the other one, whatever other ranks do.
  void meet() {
    rank.post(link.peer, "here");
    rank.take(link.peer);
  }

  void begin() {
    expect(rank.plugin().reg_mr(link.send, buffer.data(), buffer.bytes(), abi::kHostMemory, &send_region), "regMr");
    expect(rank.plugin().reg_mr(link.receive, arrivals.data(), arrivals.bytes(), abi::kHostMemory, &receive_region),
           "regMr");
  }
  void end() {
    expect(rank.plugin().dereg_mr(link.send, send_region), "deregMr");
    expect(rank.plugin().dereg_mr(link.receive, receive_region), "deregMr");
  }

  /// A number at both ends of each message, for what is not there when it should be also looks fast.
  void* start(bool is_send, size_t slot, size_t bytes, uint64_t number) {
    unsigned char* const bytes_of_slot = (is_send ? buffer : arrivals).data() + slot * bytes;
    void* data = bytes_of_slot;
    if (is_send) {
      std::memcpy(bytes_of_slot, &number, sizeof number);
      std::memcpy(bytes_of_slot + bytes - sizeof number, &number, sizeof number);
    }
    void* request = nullptr;
    int tag = is_send ? rank.id() : link.peer;
    while (request == nullptr) {
      const int code = is_send ? rank.plugin().isend(link.send, data, bytes, tag, send_region, &request)
                               : rank.plugin().irecv(link.receive, 1, &data, &bytes, &tag, &receive_region, &request);
      if (code != 0) {
        expect(code, is_send ? "isend" : "irecv");
      }
      if (request == nullptr) {
        yield_now();
      }
    }
    return request;
  }

  void check(size_t slot, size_t bytes, uint64_t number) const {
    const unsigned char* const found = arrivals.data() + slot * bytes;
    if (std::memcmp(found, &number, sizeof number) != 0 ||
        std::memcmp(found + bytes - sizeof number, &number, sizeof number) != 0) {
      throw Failure("message " + std::to_string(number) + " of " + std::to_string(bytes) + " bytes is wrong");
    }
  }

  void finish(void* request) {
    std::array<int, abi::kMostSizes> sizes;
    for (int done = 0; done == 0;) {
      if (const int code = rank.plugin().test(request, &done, sizes.data()); code != 0) {
        expect(code, "test");
      }
      if (done == 0) {
        yield_now();
      }
    }
  }
};

/// The median of half a round trip, in microseconds.
double ping_pong_us(Track& track, size_t bytes, int turns) {
  std::vector<double> times;
  for (int turn = 0; turn < turns; ++turn) {
    const auto number = static_cast<uint64_t>(turn) + 1;
    const uint64_t begin = now_ns();
    void* const arriving = track.start(false, 1, bytes, number);
    if (track.is_first()) {
      track.finish(track.start(true, 0, bytes, number));
      track.finish(arriving);
    } else {
      track.finish(arriving);
      track.finish(track.start(true, 0, bytes, number));
    }
    track.check(1, bytes, number);
    times.push_back(static_cast<double>(now_ns() - begin) * 0.5e-3);
  }
  std::nth_element(times.begin(), times.begin() + turns / 2, times.end());
  return times[static_cast<size_t>(turns / 2)];
}

/// From the first to the other with 8 outstanding: microseconds a message, at the receiver's end.
double one_way_us(Track& track, size_t bytes, size_t messages) {
  constexpr size_t kDepth = 8;
  const bool is_send = track.is_first();
  std::array<void*, kDepth> requests{};
  const uint64_t begin = now_ns();
  for (size_t i = 0; i < messages + kDepth; ++i) {
    if (i >= kDepth) {
      track.finish(requests[i % kDepth]);
      if (!is_send) {
        track.check(i % kDepth, bytes, i - kDepth);
      }
    }
    if (i < messages) {
      requests[i % kDepth] = track.start(is_send, i % kDepth, bytes, i);
    }
  }
  return static_cast<double>(now_ns() - begin) * 1e-3 / static_cast<double>(messages);
}

void measure_sizes(Rank& rank, Track& track) {
  if (!track.is_first()) {
    rank.row("    size  half RTT us     time us     GB/s");
  }
  for (const size_t bytes : {size_t{8}, size_t{128}, size_t{4096}, size_t{65536}, size_t{524288}, size_t{4} << 20U}) {
    // About as many bytes for each of the large ones, and enough turns for a median.
    const int turns = bytes <= 4096 ? 3000 : bytes <= 65536 ? 500 : 60;
    const size_t messages = bytes <= 4096 ? 5000 : std::min<size_t>(2000, (size_t{512} << 20U) / bytes);
    track.meet();
    double half_us = 0;
    double time_us = 0;
    rank.progress().run([&] {
      ping_pong_us(track, bytes, turns / 10 + 1);  // caches and paths are warm then
      half_us = ping_pong_us(track, bytes, turns);
    });
    track.meet();
    rank.progress().run([&] { time_us = one_way_us(track, bytes, messages); });
    if (!track.is_first()) {
      std::array<char, 96> row{};
      std::snprintf(row.data(), row.size(), "%8zu  %11.2f  %10.2f  %7.3f", bytes, half_us, time_us,
                    static_cast<double>(bytes) * 1e-3 / time_us);
      rank.row(row.data());
    }
  }
}

/// Messages of 4 MiB for about --seconds: a part of them first, by which the receiver says how many it will be.
void measure_for_seconds(Rank& rank, Track& track) {
  constexpr size_t kBytes = size_t{4} << 20U;
  constexpr size_t kPart = 24;
  double time_us = 0;
  track.meet();
  rank.progress().run([&] { time_us = one_way_us(track, kBytes, kPart); });
  auto messages = std::max(kPart, static_cast<size_t>(rank.options().seconds * 1e6 / time_us));
  if (track.is_first()) {
    messages = std::stoull(rank.take(track.link.peer));
  } else {
    rank.post(track.link.peer, std::to_string(messages));
  }
  track.meet();
  rank.progress().run([&] { time_us = one_way_us(track, kBytes, messages); });
  if (!track.is_first()) {
    std::array<char, 96> row{};
    std::snprintf(row.data(), row.size(), "%d>%d %zu messages of 4 MiB, %.4f GB/s", track.link.peer, rank.id(),
                  messages, static_cast<double>(kBytes) * 1e-3 / time_us);
    rank.row(row.data());
  }
}

void between_two(Rank& rank, void (*measure)(Rank&, Track&)) {
  if (partner_of(rank) >= 0) {
    std::vector<Link> links = open_links(rank, {partner_of(rank)}, 1);
    Track track{.rank = rank, .link = links[0]};
    track.begin();
    measure(rank, track);
    track.end();
    track.meet();
    close_links(rank, links);
  }
  rank.barrier();  // until then others relay
}

void perf(Rank& rank) { between_two(rank, measure_sizes); }
void bandwidth(Rank& rank) { between_two(rank, measure_for_seconds); }

}  // namespace

std::vector<Case> stream_cases() {
  return {{.name = "stream",
           .asserts = "all ordered pairs exchange verified messages for --seconds",
           .run = stream,
           .limit_s = 60,
           .takes_seconds = true},
          {.name = "perf",
           .asserts = "half round trips and one-way bandwidth between two ranks, 0 and 1 or --pair",
           .run = perf,
           .limit_s = 90},
          {.name = "bandwidth",
           .asserts = "one-way bandwidth of 4 MiB between two ranks, 0 and 1 or --pair, for --seconds",
           .run = bandwidth,
           .takes_seconds = true}};
}

}  // namespace ringbolt::test
