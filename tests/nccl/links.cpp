#include "links.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace ringbolt::test {
namespace {

constexpr double kPatienceS = 0.1;

}  // namespace

std::vector<int> peers_of(const Rank& rank) {
  std::vector<int> peers;
  for (int peer = 0; peer < rank.size(); ++peer) {
    if (peer != rank.id()) {
      peers.push_back(peer);
    }
  }
  return peers;
}

std::vector<Link> listen_for(Rank& rank, const std::vector<int>& peers, int channels) {
  rank.step("listen");
  std::vector<Link> links;
  for (const int peer : peers) {
    for (int channel = 0; channel < channels; ++channel) {
      Link& link = links.emplace_back();
      link.peer = peer;
      link.channel = channel;
    }
  }
  for (Link& link : links) {
    expect(rank.plugin().listen(rank.context(), 0, link.own, &link.listener), "listen");
  }
  return links;
}

// In order of peer and channel at both ends, so that mail needs no labels.
void exchange_handles(Rank& rank, std::vector<Link>& links) {
  rank.step("exchange handles");
  for (const Link& link : links) {
    rank.post(link.peer, std::string(reinterpret_cast<const char*>(link.own.bytes.data()), link.own.bytes.size()));
  }
  for (Link& link : links) {
    const std::string text = rank.take(link.peer);
    std::memcpy(link.theirs.bytes.data(), text.data(), link.theirs.bytes.size());
  }
}

void establish(Rank& rank, std::vector<Link>& links, const Manner& manner) {
  rank.step("connect and accept");
  const uint64_t begin = now_ns();
  uint64_t moved = begin;
  while (true) {
    bool is_complete = true;
    for (Link& link : links) {
      if (link.send == nullptr && seconds_since(begin) >= manner.connect_after_s) {
        expect(rank.plugin().connect(rank.context(), 0, link.theirs, &link.send),
               "connect to rank " + std::to_string(link.peer));
        moved = link.send != nullptr ? now_ns() : moved;
      }
      if (link.receive == nullptr && seconds_since(begin) >= manner.accept_after_s) {
        expect(rank.plugin().accept(link.listener, &link.receive), "accept from rank " + std::to_string(link.peer));
        moved = link.receive != nullptr ? now_ns() : moved;
      }
      is_complete = is_complete && link.send != nullptr && link.receive != nullptr;
    }
    if (is_complete) {
      break;
    }
    if (seconds_since(begin) > manner.limit_s) {
      const auto open = std::find_if(links.begin(), links.end(),
                                     [](const Link& link) { return link.send == nullptr || link.receive == nullptr; });
      throw Failure("not connected after " + std::to_string(manner.limit_s) + " s: channel " +
                    std::to_string(open->channel) + (open->send == nullptr ? " to rank " : " from rank ") +
                    std::to_string(open->peer));
    }
    // Who spends seconds within calls is within one whenever this machine does something else.
    seconds_since(moved) < kPatienceS ? yield_now() : sleep_s(1e-3);
  }
  // NCCL closes a listener as soon as it has accepted: the connection must not depend on it.
  for (Link& link : links) {
    expect(rank.plugin().close_listen(link.listener), "closeListen");
    link.listener = nullptr;
  }
}

std::vector<Link> open_links(Rank& rank, const std::vector<int>& peers, int channels, const Manner& manner) {
  std::vector<Link> links = listen_for(rank, peers, channels);
  exchange_handles(rank, links);
  establish(rank, links, manner);
  return links;
}

void close_links(Rank& rank, std::vector<Link>& links) {
  rank.step("close");
  for (Link& link : links) {
    if (link.send != nullptr) {
      promptly("closeSend", [&] { return rank.plugin().close_send(link.send); });
    }
    if (link.receive != nullptr) {
      promptly("closeRecv", [&] { return rank.plugin().close_recv(link.receive); });
    }
    if (link.listener != nullptr) {
      promptly("closeListen", [&] { return rank.plugin().close_listen(link.listener); });
    }
  }
  links.clear();
}

void yield_now() { sched_yield(); }

void sleep_s(double seconds) {
  const timespec pause{
      .tv_sec = static_cast<time_t>(seconds),
      .tv_nsec = static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  nanosleep(&pause, nullptr);
}

}  // namespace ringbolt::test
