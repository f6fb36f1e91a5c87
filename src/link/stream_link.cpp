// Hot path, but for the beginning and the end of epochs.
#include "link/stream_link.h"

#include <algorithm>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/stream_hello.h"

namespace ringbolt::link {
namespace {

using Kind = StreamSession::Event::Kind;
using End = StreamSession::End;

StreamSession::Options session_options(const StreamLink::Options& options) {
  RINGBOLT_ASSERT(options.incarnation != 0 && options.greeting.size() <= wire::kMaxStreamGreetingBytes);
  StreamSession::Options session;
  session.window_frames = options.window_frames;
  session.output_bytes = options.output_bytes;
  session.timing = options.timing;
  session.hello.resize(wire::kStreamHelloBytes);
  wire::StreamHello hello;
  hello.incarnation = options.incarnation;
  wire::emit(hello, session.hello);
  session.hello.insert(session.hello.end(), options.greeting.begin(), options.greeting.end());
  return session;
}

}  // namespace

StreamLink::StreamLink(const Options& options)
    : window_(options.window_packets),
      order_(options.window_packets),
      incarnation_(options.incarnation),
      epochs_(options.seed) {
  RINGBOLT_ASSERT(options.rails != 0);
  const StreamSession::Options session = session_options(options);
  rails_.reserve(options.rails);
  for (size_t i = 0; i < options.rails; ++i) {
    rails_.emplace_back(session).offered_greeting.reserve(wire::kMaxStreamGreetingBytes);
  }
  peer_greeting_.reserve(wire::kMaxStreamGreetingBytes);
}

/// splitmix64 (Steele, Lea, Flood 2014).
uint32_t StreamLink::next_epoch() {
  uint32_t epoch = 0;
  while (epoch == 0) {
    epochs_ += 0x9e3779b97f4a7c15U;
    uint64_t mixed = epochs_ ^ incarnation_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    epoch = static_cast<uint32_t>(mixed ^ (mixed >> 31U));
  }
  return epoch;
}

void StreamLink::open(size_t index, uint64_t now_ns) {
  close(index);
  rails_[index].should_reopen = false;
  rails_[index].session.open(next_epoch(), now_ns);
}

void StreamLink::close(size_t index) {
  Rail& rail = rails_[index];
  if (rail.session.state() != StreamSession::State::closed) {
    counters_.ended_epochs += rail.session.is_ready() ? 1U : 0U;
    rail.session.end(End::stream_ended);
    rail.last_end = End::stream_ended;
  }
  give_back(rail);
  count_ready();
}

void StreamLink::leave(uint64_t now_ns) {
  for (Rail& rail : rails_) {
    rail.session.leave(now_ns);
    give_back(rail);
  }
  count_ready();
}

void StreamLink::count_ready() {
  ready_rails_ =
      static_cast<size_t>(std::ranges::count_if(rails_, [](const Rail& rail) { return rail.session.is_ready(); }));
}

std::optional<std::span<const std::byte>> StreamLink::next_packet(size_t index, uint64_t now_ns) {
  if (const auto kept = order_.take()) {
    ++counters_.packets_in;
    return kept;
  }
  Rail& rail = rails_[index];
  while (true) {
    const StreamSession::Event event = rail.session.next(now_ns);
    if (take_acknowledged(rail)) {
      waiting_since_ns_ = window_.is_empty() ? 0 : now_ns;
    }
    switch (event.kind) {
      case Kind::nothing:
        return std::nullopt;
      case Kind::greeted:
        on_greeted(rail, event.bytes, now_ns);
        break;
      case Kind::ready:
        if (!on_ready(rail)) {
          rail.session.end(End::refused);
          on_over(rail, now_ns);
        }
        break;
      case Kind::over:
        on_over(rail, now_ns);
        break;
      case Kind::message:
        if (const auto packet = take_message(rail, event.bytes, now_ns)) {
          return packet;
        }
        break;
    }
  }
}

void StreamLink::on_greeted(Rail& rail, std::span<const std::byte> payload, uint64_t now_ns) {
  const auto hello = wire::parse_stream_hello(payload);
  if (!hello || hello->incarnation == incarnation_) {
    return;  // garbage, a version that we don't speak, or our own bytes (a terminal that echoes, a plug that loops)
  }
  if (is_up() && hello->incarnation != peer_incarnation_) {
    rail.last_end = End::refused;  // leftovers of a dead process, or a crossed cable: not while the present peer lives
    return;
  }
  rail.offered_incarnation = hello->incarnation;
  const auto greeting = wire::stream_greeting(payload);
  rail.offered_greeting.assign(greeting.begin(), greeting.end());
  rail.session.accept_peer(now_ns);
}

bool StreamLink::on_ready(Rail& rail) {
  if (rail.offered_incarnation != peer_incarnation_) {
    const bool has_others =
        std::ranges::any_of(rails_, [&](const Rail& other) { return &other != &rail && other.session.is_ready(); });
    if (has_others) {
      return false;
    }
    // Only now: a HELLO alone may be a leftover, but who is ready has answered ours.
    if (peer_incarnation_ != 0) {
      window_.reset();  // what the last peer did not take in is nothing that this one could know of
      order_.reset();
      waiting_since_ns_ = 0;
    }
    peer_incarnation_ = rail.offered_incarnation;
  }
  peer_greeting_ = rail.offered_greeting;
  rail.should_reopen = false;
  has_left_ = false;
  count_ready();
  return true;
}

/// A new epoch begins at once in the same stream; should_reopen says whether that can help.
void StreamLink::on_over(Rail& rail, uint64_t now_ns) {
  ++counters_.ended_epochs;
  rail.last_end = rail.session.end();
  rail.should_reopen = rail.last_end == End::silence || rail.last_end == End::said_bye;
  has_left_ = has_left_ || rail.last_end == End::said_bye;
  give_back(rail);
  rail.session.restart(next_epoch(), now_ns);
  count_ready();
}

void StreamLink::give_back(Rail& rail) {
  take_acknowledged(rail);
  while (const auto number = rail.session.take_unacknowledged()) {
    window_.on_returned(*number);
  }
}

bool StreamLink::take_acknowledged(Rail& rail) {
  bool has_news = false;
  while (const auto number = rail.session.take_acknowledged()) {
    window_.on_acknowledged(*number);
    has_news = true;
  }
  return has_news;
}

std::optional<std::span<const std::byte>> StreamLink::take_message(Rail& rail, std::span<const std::byte> message,
                                                                   uint64_t now_ns) {
  if (message.size() >= kStreamNumberBytes) {
    const auto packet = message.subspan(kStreamNumberBytes);
    switch (order_.offer(wire::get_le<uint64_t>(message, 0), packet)) {
      case StreamOrder::Verdict::next:
        ++counters_.packets_in;
        return packet;
      case StreamOrder::Verdict::kept:
        return std::nullopt;
      case StreamOrder::Verdict::duplicate:
        ++counters_.duplicate_packets;
        return std::nullopt;
      case StreamOrder::Verdict::no_memory:
        // The session counts it as taken in, but has yet to say so, and says nothing more in this epoch: it is returned
        // to the sender's window, and comes again.
        rail.session.end(End::no_memory);
        on_over(rail, now_ns);
        return std::nullopt;
      case StreamOrder::Verdict::beyond:
        break;
    }
  }
  rail.session.end(End::bad_frame);
  on_over(rail, now_ns);
  return std::nullopt;
}

StreamLink::Rail* StreamLink::roomiest(size_t message_bytes) {
  Rail* best = nullptr;
  for (Rail& rail : rails_) {
    if (rail.session.can_send(message_bytes) && (best == nullptr || rail.session.credits() > best->session.credits())) {
      best = &rail;
    }
  }
  return best;
}

void StreamLink::distribute(uint64_t now_ns) {
  if (waiting_since_ns_ == 0 && !window_.is_empty()) {
    waiting_since_ns_ = now_ns;
  }
  while (const auto number = window_.first_waiting()) {
    const auto message = window_.message(*number);
    Rail* rail = roomiest(message.size());
    if (rail == nullptr) {
      return;
    }
    rail->session.send(*number, message, now_ns);
    window_.on_assigned(*number);
    ++counters_.packets_out;
  }
}

void StreamLink::tick(uint64_t now_ns) {
  for (Rail& rail : rails_) {
    if (rail.session.tick(now_ns)) {
      on_over(rail, now_ns);
    }
  }
}

uint64_t StreamLink::next_deadline_ns() const {
  uint64_t deadline = UINT64_MAX;
  for (const Rail& rail : rails_) {
    deadline = std::min(deadline, rail.session.next_deadline_ns());
  }
  return deadline;
}

StreamLink::Counters StreamLink::counters() const {
  Counters counters = counters_;
  counters.repeated_packets = window_.returned_packets();
  counters.kept_packets = order_.kept_packets();
  return counters;
}

}  // namespace ringbolt::link
