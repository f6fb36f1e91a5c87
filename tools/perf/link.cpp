#include "perf/link.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "failure.h"
#include "pair/values.h"
#include "perf/message.h"

namespace ringbolt::tools::perf {
namespace {

// A processor's cache line: no two slots share one.
constexpr size_t kLineBytes = 64;

unsigned remote_access(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return IBV_ACCESS_REMOTE_WRITE;
    case Operation::kRead:
      return IBV_ACCESS_REMOTE_READ;
    case Operation::kAtomic:
      return IBV_ACCESS_REMOTE_ATOMIC;
    case Operation::kSend:
      break;
  }
  return 0;
}

}  // namespace

Link::Link(const Device& device, const Parameters& parameters, const Tuning& tuning, const Step& step, Peer& peer)
    : device_(device),
      parameters_(parameters),
      step_(step),
      peer_(peer),
      depths_(Depths::of(step.size_bytes, parameters, tuning, step.is_latency)) {
  if (step_.is_latency) {
    parameters_.queue_pairs = 1;
  }
  if (device.counts_frames()) {
    // Such queues may take some frames fewer than they say.
    constexpr uint64_t kReserve = 16;
    const auto frames = static_cast<uint64_t>(std::max(device.limits().max_qp_wr, 1));
    depths_.limit((frames - std::min(kReserve, frames - 1)) / device.depth_of_message(step.size_bytes));
  }
  receive_places_ = depths_.receive_slots;
  lay_out();
  make_queues(tuning);
  connect(tuning);
}

bool Link::has_credits() const {
  return !step_.is_latency && (parameters_.operation == Operation::kSend || parameters_.operation == Operation::kWrite);
}

bool Link::has_notices() const { return !step_.is_latency && parameters_.operation == Operation::kWrite; }

void Link::lay_out() {
  using pair::Region;
  const size_t count = parameters_.queue_pairs;
  notices_sent_.resize(count);
  const auto places = [&](uint32_t slots) { return depths_.has_one_place ? count : count * slots; };
  stride_ = Region::rounded_up(step_.size_bytes + header_bytes(), kLineBytes);
  receive_offset_ = Region::rounded_up(stride_ * places(depths_.send_slots), Region::kPageBytes);
  word_offset_ = receive_offset_ + Region::rounded_up(stride_ * places(receive_places_), Region::kPageBytes);
  const size_t words = 2 * kNotices * count + kCreditSends + kCreditReceives;
  memory_ =
      Region(device_, word_offset_ + words * 2 * kLineBytes, remote_access(parameters_.operation), "-s, -t, -r or -q");
  // The clock, so that what a run before left in memory is no message of this one; odd, so never 0 as fresh memory.
  mine_.seed = static_cast<uint32_t>(base::now_ns() >> 8U) | 1U;
  for (uint32_t queue_pair = 0; queue_pair < count; ++queue_pair) {
    for (uint32_t slot = 0; slot < depths_.send_slots; ++slot) {
      fill_slot(send_slot(queue_pair, slot), mine_.seed, slot);
      write_stamp(send_slot(queue_pair, slot), stamp_of(mine_.seed, slot));
    }
  }
}

void Link::make_queues(const Tuning& tuning) {
  const uint32_t count = parameters_.queue_pairs;
  const bool receives_messages = parameters_.operation == Operation::kSend;
  const uint32_t receives = receives_messages ? depths_.receive_slots : kNotices;
  // Notices go on the queue pair of the WRITEs that they tell of, to come after them.
  const uint32_t sends = depths_.in_flight + (has_notices() ? kNotices : 0);
  if (tuning.has_events) {
    events_ = device_.own(device_.verbs().create_comp_channel(device_.context()), "ibv_create_comp_channel");
  }
  send_cq_ = device_.make_cq(uint64_t{count} * sends, events_.get());
  receive_cq_ = device_.make_cq(uint64_t{count} * receives, events_.get());
  QueuePairPlan plan{parameters_.transport, send_cq(), receive_cq(), sends, receives};
  plan.message_bytes = step_.size_bytes;
  plan.remote_access = remote_access(parameters_.operation);
  const bool sends_data = parameters_.operation == Operation::kSend || parameters_.operation == Operation::kWrite;
  plan.inline_bytes = tuning.inline_bytes >= 0 ? tuning.inline_bytes : step_.is_latency && sends_data ? -1 : 0;
  for (uint32_t index = 0; index < count; ++index) {
    queue_pairs_.emplace_back(device_, plan);
  }
  if (has_credits()) {
    credit_cq_ = device_.make_cq(kCreditSends + kCreditReceives, events_.get());
    credit_queue_pair_.emplace(
        device_, QueuePairPlan{parameters_.transport, credit_cq(), credit_cq(), kCreditSends, kCreditReceives});
  }
}

/// Devices may take fewer than they have granted.
void Link::post_first_receives() {
  for (uint32_t queue_pair = 0; queue_pair < queue_pairs(); ++queue_pair) {
    if (parameters_.operation == Operation::kSend) {
      for (uint32_t slot = 0; slot < depths_.receive_slots; ++slot) {
        const int error = try_post_receive(queue_pair, slot);
        // The loop's bound, too: it ends here, and the other queue pairs try no more than this one took.
        if (error == ENOMEM && slot > 0) {
          depths_.receive_slots = slot;
        } else if (error != 0) {
          pair::fail_call("ibv_post_recv", error);
        }
      }
    }
    for (uint32_t notice = 0; has_notices() && notice < kNotices; ++notice) {
      post_notice_receive(queue_pair, notice);
    }
  }
  for (uint64_t credit = 0; has_credits() && credit < kCreditReceives; ++credit) {
    credit_queue_pair_->post_receive(credit_slot(kCreditSends + credit), local_key(), credit);
  }
}

void Link::connect(const Tuning& tuning) {
  mine_.window = receive_places_;
  mine_.send_slots = depths_.send_slots;
  mine_.stride = static_cast<uint32_t>(stride_);
  mine_.send_address = memory_.address();
  mine_.receive_address = mine_.send_address + receive_offset_;
  mine_.remote_key = memory_.remote_key();
  std::vector<QueuePair*> all;
  for (QueuePair& one : queue_pairs_) {
    all.push_back(&one);
  }
  if (credit_queue_pair_) {
    all.push_back(&*credit_queue_pair_);
  }
  theirs_ = pair::connect_all(device_, all, mine_, tuning, peer_);
  if (theirs_.send_slots < 2) {  // slots_used() would leave it none
    peer_.fail("{} sends from {} slot, and a measurement takes two at least", peer_.name(), theirs_.send_slots);
  }
  post_first_receives();  // some devices take none before
  const auto window = pair::exchange(peer_, "connected", depths_.receive_slots, "its posted receives");
  // Fewer only of SENDs: WRITEs and atomics, which compute addresses by the window, have no receives to be refused.
  theirs_.window = std::clamp(window, 1U, theirs_.window);
}

std::span<std::byte> Link::send_slot(uint32_t queue_pair, uint64_t index) const {
  return bytes(stride_ * place_of(queue_pair, index, depths_.send_slots), step_.size_bytes);
}

std::span<std::byte> Link::receive_slot(uint32_t queue_pair, uint64_t index) const {
  return bytes(receive_offset_ + stride_ * place_of(queue_pair, index, receive_places_) + header_bytes(),
               step_.size_bytes);
}

uint64_t Link::remote_send_address(uint32_t queue_pair, uint64_t index) const {
  return theirs_.send_address + uint64_t{theirs_.stride} * place_of(queue_pair, index, theirs_.send_slots);
}

uint64_t Link::remote_receive_address(uint32_t queue_pair, uint64_t index) const {
  return theirs_.receive_address + uint64_t{theirs_.stride} * place_of(queue_pair, index, theirs_.window);
}

void Link::post_receive(uint32_t queue_pair, uint64_t index) const {
  if (const int error = try_post_receive(queue_pair, index)) {
    pair::fail_call("ibv_post_recv", error);
  }
}

int Link::try_post_receive(uint32_t queue_pair, uint64_t index) const {
  const std::span<std::byte> message = receive_slot(queue_pair, index);
  return queue_pairs_[queue_pair].try_post_receive({message.data() - header_bytes(), message.size() + header_bytes()},
                                                   local_key(), uint64_t{queue_pair} << 32U | index);
}

void Link::post_notice_receive(uint32_t queue_pair, uint64_t index) const {
  queue_pairs_[queue_pair].post_receive(notice_slot(queue_pair, index), local_key(),
                                        uint64_t{queue_pair} << 32U | index);
}

std::span<std::byte> Link::notice_slot(uint32_t queue_pair, uint64_t index) const {
  return bytes(word_offset_ + 2 * kLineBytes * (uint64_t{queue_pair} * 2 * kNotices + index), sizeof(Word));
}

std::span<std::byte> Link::credit_slot(uint64_t index) const {
  const size_t first = 2 * kNotices * parameters_.queue_pairs;
  return bytes(word_offset_ + 2 * kLineBytes * (first + index),
               sizeof(Word) + (index >= kCreditSends ? header_bytes() : 0));
}

void Link::post_word(const QueuePair& queue_pair, std::span<std::byte> slot, const Word& word, uint64_t id) const {
  std::memcpy(slot.data(), &word, sizeof word);
  ibv_sge sge{reinterpret_cast<uintptr_t>(slot.data()), sizeof word, local_key()};
  ibv_send_wr request{};
  request.wr_id = id;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  queue_pair.address_request(request);
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(queue_pair.get(), &request, &bad)) {
    pair::fail_call("ibv_post_send of a notice or credit", error);
  }
}

void Link::post_notice(uint32_t queue_pair, uint64_t count, uint64_t id) {
  const uint64_t slot = kNotices + notices_sent_[queue_pair]++ % kNotices;
  post_word(queue_pairs_[queue_pair], notice_slot(queue_pair, slot), {queue_pair, count}, id);
}

bool Link::send_credit(uint32_t queue_pair, uint64_t count) {
  if (credits_under_way_ >= kCreditSends) {
    const std::optional<Word> credit = take_credit();  // reaps completions of ours
    if (credit) {
      credits_.insert(credits_.begin(), *credit);
    }
    if (credits_under_way_ >= kCreditSends) {
      return false;
    }
  }
  post_word(*credit_queue_pair_, credit_slot(credits_sent_++ % kCreditSends), {queue_pair, count}, 0);
  ++credits_under_way_;
  return true;
}

std::optional<Link::Word> Link::take_credit() {
  if (credits_.empty()) {
    std::array<ibv_wc, 16> completions;
    const int count = poll(credit_cq(), completions, "a credit");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = completions[static_cast<size_t>(i)];
      if ((one.opcode & IBV_WC_RECV) == 0) {
        --credits_under_way_;
        continue;
      }
      if (one.wr_id >= kCreditReceives) {
        peer_.fail("a receive of a credit completed that was not posted (id {:#x})", one.wr_id);
      }
      const std::span<std::byte> slot = credit_slot(kCreditSends + one.wr_id);
      Word word;
      std::memcpy(&word, slot.data() + slot.size() - sizeof word, sizeof word);
      credits_.push_back(word);
      credit_queue_pair_->post_receive(slot, local_key(), one.wr_id);
    }
  }
  if (credits_.empty()) {
    return std::nullopt;
  }
  const Word first = credits_.front();
  credits_.erase(credits_.begin());
  return first;
}

int Link::poll(ibv_cq* cq, std::span<ibv_wc> completions, const char* what) const {
  const int count = ibv_poll_cq(cq, static_cast<int>(completions.size()), completions.data());
  if (count < 0) {
    throw ProbeFailure("ibv_poll_cq failed");
  }
  for (int i = 0; i < count; ++i) {
    const ibv_wc_status status = completions[static_cast<size_t>(i)].status;
    if (status != IBV_WC_SUCCESS) {
      peer_.fail("the completion of {} says: {}", what, device_.verbs().wc_status_str(status));
    }
    if (const uint64_t id = completions[static_cast<size_t>(i)].wr_id; id >> 32U >= queue_pairs_.size()) {
      peer_.fail("a completion of {} has the id {:#x}, which no request had", what, id);
    }
  }
  return count;
}

// Sleeping on completion events.

// ibv_req_notify_cq(3) arms a queue for one event: of what comes after the call.
void Link::arm() const {
  for (ibv_cq* cq : {send_cq(), receive_cq(), credit_cq()}) {
    if (cq == nullptr) {
      continue;
    }
    if (const int error = ibv_req_notify_cq(cq, 0)) {
      pair::fail_call("ibv_req_notify_cq", error);
    }
  }
}

void Link::doze() {
  if (!events_) {
    return;
  }
  if (!is_armed_) {
    // What came before this raises no event: the caller polls once more before it sleeps.
    arm();
    is_armed_ = true;
    return;
  }
  // Short enough for everything that no completion announces: a text of the peer wakes us too.
  constexpr int kMostMs = 20;
  std::array<pollfd, 2> polled{pollfd{events_->fd, POLLIN, 0}, pollfd{peer_.fd(), POLLIN, 0}};
  ::poll(polled.data(), polled.size(), kMostMs);
  is_armed_ = false;
  if ((polled[0].revents & POLLIN) != 0) {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (verbs().get_cq_event(events_.get(), &cq, &context) == 0) {
      verbs().ack_cq_events(cq, 1);
    }
  }
}

}  // namespace ringbolt::tools::perf
