#include "probe/endpoint.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "bringup/survey.h"
#include "probe/pattern.h"
#include "probe/probe_failure.h"
#include "probe/verbs_objects.h"
#include "stop.h"
#include "verbs/codes.h"

namespace ringbolt::tools {
namespace {

constexpr uint32_t kMostSlots = 64;
/// A word for each message that can be under way, and those of the measurement.
constexpr uint32_t kWordSlots = 2 * kMostSlots;
constexpr uint32_t kMostWords = kWordSlots / 2;
constexpr int kCompletions = 2 * (2 * kWordSlots + 2 * kMostSlots);
constexpr size_t kPageBytes = 16384;  // devices that map whole pages want regions to begin on them
constexpr size_t kFrameBytes = 4096;
constexpr size_t kLineBytes = 64;
constexpr uint8_t kPort = 1;
constexpr uint8_t kHops = 64;
/// In a word: it tells how many messages were taken.
constexpr uint64_t kCredit = uint64_t{1} << 63U;

/// What the two ends tell each other.
struct Identity {
  ibv_gid gid{};
  uint32_t words_number = 0;
  uint32_t messages_number = 0;
  uint32_t psn = 0;
  uint32_t mtu_bytes = 0;
  uint32_t lid = 0;
  uint32_t has_rc = 0;
};
static_assert(sizeof(Identity) == 40);

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// Whether the other end is gone. Never waits.
bool is_broken(const Channel& channel) {
  pollfd polled{channel.read_fd(), POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) > 0;
}

Identity exchange(Channel& channel, const Identity& mine) {
  Identity theirs;
  channel.exchange(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&theirs, 1)));
  return theirs;
}

}  // namespace

SlotPlan SlotPlan::for_size(size_t size_bytes) {
  constexpr size_t kMostBytes = size_t{15} << 20U;  // in frames of 4 KiB no more than any device's queue holds
  const size_t slots = std::clamp<size_t>(kMostBytes / size_bytes, 2, kMostSlots);
  return {size_bytes, static_cast<uint32_t>(slots), static_cast<uint32_t>(slots - 1)};
}

Endpoint::Endpoint(const verbs::Library& library, const std::string& device, const SlotPlan& plan, Channel& channel)
    : plan_(plan),
      channel_(channel),
      context_(open_device(library, device)),
      pd_(context_),
      cq_(context_, kCompletions) {
  lay_out();
  open(look_at_device());
  connect();
}

/// Also agrees with the other end on the type of queue pair.
bringup::Capabilities Endpoint::look_at_device() {
  const bringup::Capabilities device = bringup::probe(pd_, cq_, kPort);
  if (device.most_message_bytes != 0 && plan_.size_bytes > device.most_message_bytes) {
    throw ProbeFailure(fmt::format("{} takes messages of up to {} bytes, not {}: give a smaller --size",
                                   context_.device(), device.most_message_bytes, plan_.size_bytes));
  }
  Identity mine;
  mine.has_rc = device.has_rc ? 1 : 0;
  const Identity theirs = exchange(channel_, mine);
  type_ = device.has_rc && theirs.has_rc != 0 ? IBV_QPT_RC : IBV_QPT_UC;
  return device;
}

void Endpoint::lay_out() {
  words_.stride = kLineBytes;
  words_.length = sizeof(uint64_t);
  words_.send_slots = words_.receive_slots = kWordSlots;
  messages_.offset = rounded_up(words_.end(), kPageBytes);
  messages_.stride = messages_.length = plan_.size_bytes;
  messages_.send_slots = plan_.send_slots;
  messages_.receive_slots = plan_.receive_slots;
  const size_t total = rounded_up(messages_.end(), kPageBytes);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, total)));
  if (memory_ == nullptr) {
    fail_call("aligned_alloc", ENOMEM);
  }
  std::memset(memory_.get(), 0, total);
  for (uint32_t number = 0; number < plan_.send_slots; ++number) {
    fill_pattern(send_slot(messages_, number), number);
  }
  region_.emplace(pd_, std::span(memory_.get(), total));
}

void Endpoint::open(const bringup::Capabilities& device) {
  for (Lane* lane : {&words_, &messages_}) {
    const size_t frames = device.counts_frames ? rounded_up(lane->length, kFrameBytes) / kFrameBytes : 1;
    verbs::QueuePairPlan plan;
    plan.type = type_;
    plan.send_cq = plan.receive_cq = &cq_;
    plan.send_depth = plan.receive_depth = static_cast<uint32_t>(lane->receive_slots * frames);
    plan.is_each_signalled = true;
    lane->unconnected.emplace(pd_, plan);
  }
}

void Endpoint::connect() {
  const base::Result<ibv_port_attr> port = context_.query_port(kPort);
  if (!port) {
    fail_call("ibv_query_port", port.error().value);
  }
  Identity mine;
  verbs::Path path;
  path.port = kPort;
  path.gid_index = choose_gid(context_, kPort, mine.gid);
  path.hop_limit = kHops;
  path.psn = static_cast<uint32_t>(base::now_ns()) & 0xffffffU;
  mine.words_number = words_.number();
  mine.messages_number = messages_.number();
  mine.psn = path.psn;
  mine.mtu_bytes = verbs::mtu_bytes(port->active_mtu);
  mine.lid = port->lid;
  const Identity theirs = exchange(channel_, mine);
  path.mtu = verbs::mtu_code(std::min(mine.mtu_bytes, theirs.mtu_bytes));
  for (Lane* lane : {&words_, &messages_}) {
    lane->unconnected->to_init(path);
    verbs::Peer peer;
    peer.qp_number = lane == &words_ ? theirs.words_number : theirs.messages_number;
    peer.psn = theirs.psn;
    peer.lid = static_cast<uint16_t>(theirs.lid);
    peer.gid = theirs.gid;
    lane->unconnected->to_rtr(peer);
    lane->connected.emplace(std::move(*lane->unconnected).to_rts());
    post_receives(*lane);  // some devices take none before RTS
  }
  channel_.exchange(std::as_bytes(std::span(&messages_.receive_slots, 1)),
                    std::as_writable_bytes(std::span(&window_, 1)));
}

/// Some devices take fewer than they have granted.
void Endpoint::post_receives(Lane& lane) {
  while (lane.receives_posted < lane.receive_slots) {
    const int error = post_receive(lane);
    if (error == ENOMEM && lane.receives_posted > 0) {
      lane.receive_slots = static_cast<uint32_t>(lane.receives_posted);
    } else if (error != 0) {
      fail_call("ibv_post_recv", error);
    }
  }
}

void Endpoint::send_word(uint64_t value) {
  while (words_.sends_under_way >= kMostWords) {
    poll_once();
  }
  std::memcpy(send_slot(words_, words_sent_).data(), &value, sizeof value);
  post_send(words_, words_sent_++);
}

uint64_t Endpoint::receive_word() {
  while (words_arrived_.empty()) {
    poll_once();
  }
  const uint64_t value = words_arrived_.front();
  words_arrived_.pop_front();
  return value;
}

bool Endpoint::next_is_message() {
  while (messages_.arrived.empty() && words_arrived_.empty()) {
    poll_once();
  }
  return !messages_.arrived.empty();
}

void Endpoint::send_message(uint32_t number) {
  while (messages_sent_ - messages_credited_ >= window_ || messages_.sends_under_way >= plan_.receive_slots) {
    poll_once();
  }
  ++messages_sent_;
  post_send(messages_, number);
}

void Endpoint::receive_message(uint32_t number) {
  while (messages_.arrived.empty()) {
    poll_once();
  }
  const uint32_t length = messages_.arrived.front();
  messages_.arrived.pop_front();
  if (length != plan_.size_bytes) {
    throw ProbeFailure(fmt::format("message {} of {} bytes arrived as {}", number, plan_.size_bytes, length));
  }
  const auto wrong = find_mismatch(receive_slot(messages_, messages_.receives_taken), number % plan_.send_slots);
  if (wrong) {
    throw ProbeFailure(fmt::format("message {} is damaged from byte {} on", number, *wrong));
  }
  const uint64_t taken = ++messages_.receives_taken;
  give_back_receive(messages_);
  constexpr uint32_t kCreditsAWindow = 4;
  if (taken % std::max(messages_.receive_slots / kCreditsAWindow, 1U) == 0) {
    send_word(kCredit | taken);
  }
}

int Endpoint::post_receive(Lane& lane) {
  const std::span<std::byte> slot = receive_slot(lane, lane.receives_posted);
  ibv_sge sge{reinterpret_cast<uintptr_t>(slot.data()), static_cast<uint32_t>(slot.size()), region_->local_key()};
  ibv_recv_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  const int error = lane.connected->post_receive(request);
  lane.receives_posted += error == 0 ? 1U : 0U;
  return error;
}

void Endpoint::give_back_receive(Lane& lane) {
  if (const int error = post_receive(lane)) {
    fail_call("ibv_post_recv", error);
  }
}

void Endpoint::post_send(Lane& lane, uint64_t slot) {
  const std::span<std::byte> bytes = send_slot(lane, slot);
  ibv_sge sge{reinterpret_cast<uintptr_t>(bytes.data()), static_cast<uint32_t>(bytes.size()), region_->local_key()};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  if (const int error = lane.connected->post_send(request)) {
    fail_call("ibv_post_send", error);
  }
  ++lane.sends_under_way;
}

void Endpoint::take_word_of(const ibv_wc& completion) {
  uint64_t value = 0;
  if (completion.byte_len != sizeof value) {
    throw ProbeFailure(fmt::format("a message of 8 bytes arrived as {}", completion.byte_len));
  }
  std::memcpy(&value, receive_slot(words_, words_.receives_taken++).data(), sizeof value);
  give_back_receive(words_);
  if ((value & kCredit) != 0) {
    messages_credited_ = value & ~kCredit;
  } else {
    words_arrived_.push_back(value);
  }
}

void Endpoint::poll_once() {
  std::array<ibv_wc, 16> completions;
  const base::Result<size_t> count = cq_.poll(completions);
  if (!count) {
    throw ProbeFailure("ibv_poll_cq failed");
  }
  for (const ibv_wc& one : std::span(completions).first(*count)) {
    if (one.status != IBV_WC_SUCCESS) {
      throw ProbeFailure(fmt::format("completion: {}", context_.calls().wc_status_str(one.status)));
    }
    Lane& lane = one.qp_num == words_.number() ? words_ : messages_;
    if ((one.opcode & IBV_WC_RECV) == 0) {
      --lane.sends_under_way;
    } else if (&lane == &words_) {
      take_word_of(one);
    } else {
      lane.arrived.push_back(one.byte_len);
    }
  }
  fruitless_ = *count == 0 ? fruitless_ + 1 : 0;
  if (fruitless_ != 0 && base::now_ns() > channel_.deadline_ns()) {
    throw ProbeFailure("nothing arrived in time");
  }
  constexpr uint32_t kRare = 1024;
  if (fruitless_ % kRare == kRare - 1 && (is_stopped() || is_broken(channel_))) {
    throw ProbeFailure(is_stopped() ? "it was interrupted" : "the other end is gone", !is_stopped());
  }
}

std::span<std::byte> Endpoint::send_slot(const Lane& lane, uint64_t number) const {
  return {memory_.get() + lane.offset + lane.stride * (number % lane.send_slots), lane.length};
}

std::span<std::byte> Endpoint::receive_slot(const Lane& lane, uint64_t count) const {
  return {memory_.get() + lane.offset + lane.stride * (lane.send_slots + count % lane.receive_slots), lane.length};
}

}  // namespace ringbolt::tools
