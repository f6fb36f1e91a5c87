#include "perf/link.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "perf/message.h"
#include "probe/probe_failure.h"

namespace ringbolt::tools::perf {
namespace {

/// Devices that map whole pages want regions to begin on them; the largest page in use has so many bytes.
constexpr size_t kPageBytes = 16384;
constexpr size_t kLineBytes = 64;
constexpr size_t kMostMemoryBytes = size_t{8} << 30U;

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

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
  lay_out();
  make_queues(tuning);
  post_first_receives();
  exchange_offers(tuning);
}

bool Link::has_credits() const {
  return !step_.is_latency && (parameters_.operation == Operation::kSend || parameters_.operation == Operation::kWrite);
}

bool Link::has_notices() const { return !step_.is_latency && parameters_.operation == Operation::kWrite; }

void Link::lay_out() {
  const bool is_ud = parameters_.transport == Transport::kUd;
  const size_t count = parameters_.queue_pairs;
  const auto places = [&](uint32_t slots) { return depths_.has_one_place ? count : count * slots; };
  stride_ = rounded_up(step_.size_bytes + (is_ud ? kRouteHeaderBytes : 0), kLineBytes);
  receive_offset_ = rounded_up(stride_ * places(depths_.send_slots), kPageBytes);
  word_offset_ = receive_offset_ + rounded_up(stride_ * places(depths_.receive_slots), kPageBytes);
  const size_t words = 2 * kNotices * count + kCreditSends + kCreditReceives;
  total_bytes_ = word_offset_ + rounded_up(words * 2 * kLineBytes, kPageBytes);
  if (total_bytes_ > kMostMemoryBytes) {
    throw ProbeFailure(fmt::format("{} bytes of buffers are too many: give smaller -s, -t, -r or -q", total_bytes_));
  }
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, total_bytes_)));
  if (memory_ == nullptr) {
    fail_call("aligned_alloc", ENOMEM);
  }
  std::memset(memory_.get(), 0, total_bytes_);
  mine_.seed = static_cast<uint32_t>(base::now_ns() >> 8U) | 1U;
  for (uint32_t queue_pair = 0; queue_pair < count; ++queue_pair) {
    for (uint32_t slot = 0; slot < depths_.send_slots; ++slot) {
      fill_slot(send_slot(queue_pair, slot), mine_.seed, slot);
      write_stamp(send_slot(queue_pair, slot), stamp_of(mine_.seed, slot));
    }
  }
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | remote_access(parameters_.operation);
  region_ =
      own(device_.library(), device_.verbs().reg_mr(device_.pd(), memory_.get(), total_bytes_, static_cast<int>(access)),
          "ibv_reg_mr");
}

void Link::make_queues(const Tuning& tuning) {
  const verbs::Calls& verbs = device_.verbs();
  const uint32_t count = parameters_.queue_pairs;
  const bool receives_messages = parameters_.operation == Operation::kSend;
  const uint32_t receives = receives_messages ? depths_.receive_slots : kNotices;
  const uint32_t sends = depths_.in_flight + (has_notices() ? kNotices : 0);
  if (tuning.has_events) {
    events_ = own(device_.library(), verbs.create_comp_channel(device_.context()), "ibv_create_comp_channel");
  }
  const auto make_cq = [&](uint64_t entries) {
    return own(device_.library(), verbs.create_cq(device_.context(), static_cast<int>(entries), nullptr, events_.get(), 0),
               "ibv_create_cq");
  };
  send_cq_ = make_cq(uint64_t{count} * sends);
  receive_cq_ = make_cq(uint64_t{count} * receives);
  QueuePairPlan plan{
      parameters_.transport, send_cq(), receive_cq(), sends, receives, 0, remote_access(parameters_.operation)};
  const bool sends_data = parameters_.operation == Operation::kSend || parameters_.operation == Operation::kWrite;
  plan.inline_bytes = tuning.inline_bytes >= 0 ? tuning.inline_bytes : step_.is_latency && sends_data ? -1 : 0;
  for (uint32_t index = 0; index < count; ++index) {
    queue_pairs_.emplace_back(device_, plan);
  }
  if (has_credits()) {
    credit_cq_ = make_cq(kCreditSends + kCreditReceives);
    credit_queue_pair_.emplace(
        device_, QueuePairPlan{parameters_.transport, credit_cq(), credit_cq(), kCreditSends, kCreditReceives, 0, 0});
  }
}

void Link::post_first_receives() {
  for (uint32_t queue_pair = 0; queue_pair < queue_pairs(); ++queue_pair) {
    if (parameters_.operation == Operation::kSend) {
      for (uint32_t slot = 0; slot < depths_.receive_slots; ++slot) {
        post_receive(queue_pair, slot);
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

void Link::exchange_offers(const Tuning& tuning) {
  std::copy(std::begin(device_.gid().raw), std::end(device_.gid().raw), mine_.gid.begin());
  mine_.lid = device_.lid();
  mine_.mtu_bytes = device_.mtu_bytes();
  mine_.target_depth = device_.target_depth();
  mine_.window = depths_.receive_slots;
  mine_.send_slots = depths_.send_slots;
  mine_.stride = static_cast<uint32_t>(stride_);
  mine_.send_address = reinterpret_cast<uintptr_t>(memory_.get());
  mine_.receive_address = mine_.send_address + receive_offset_;
  mine_.remote_key = region_->rkey;
  for (const QueuePair& one : queue_pairs_) {
    mine_.queue_pairs.push_back(one.address());
  }
  if (credit_queue_pair_) {
    mine_.queue_pairs.push_back(credit_queue_pair_->address());
  }
  peer_.tell("offer", emit_offer(mine_));
  const std::optional<Offer> offer = pair::parse_offer(peer_.await("offer", "its queue pairs' addresses"));
  if (!offer || offer->queue_pairs.size() != mine_.queue_pairs.size()) {
    peer_.fail("what the other end tells of its queue pairs makes no sense");
  }
  theirs_ = *offer;
  for (size_t index = 0; index < queue_pairs_.size(); ++index) {
    queue_pairs_[index].connect(device_, theirs_, theirs_.queue_pairs[index], tuning);
  }
  if (credit_queue_pair_) {
    credit_queue_pair_->connect(device_, theirs_, theirs_.queue_pairs.back(), tuning);
  }
  peer_.tell("connected", "");
  peer_.await("connected", "its queue pairs to be connected");
}

std::span<std::byte> Link::send_slot(uint32_t queue_pair, uint64_t index) const {
  return bytes(stride_ * place_of(queue_pair, index, depths_.send_slots), step_.size_bytes);
}

std::span<std::byte> Link::receive_slot(uint32_t queue_pair, uint64_t index) const {
  const size_t header = parameters_.transport == Transport::kUd ? kRouteHeaderBytes : 0;
  return bytes(receive_offset_ + stride_ * place_of(queue_pair, index, depths_.receive_slots) + header, step_.size_bytes);
}

uint64_t Link::remote_send_address(uint32_t queue_pair, uint64_t index) const {
  return theirs_.send_address + uint64_t{theirs_.stride} * place_of(queue_pair, index, theirs_.send_slots);
}

uint64_t Link::remote_receive_address(uint32_t queue_pair, uint64_t index) const {
  return theirs_.receive_address + uint64_t{theirs_.stride} * place_of(queue_pair, index, theirs_.window);
}

void Link::post_receive(uint32_t queue_pair, uint64_t index) const {
  const size_t header = parameters_.transport == Transport::kUd ? kRouteHeaderBytes : 0;
  const std::span<std::byte> message = receive_slot(queue_pair, index);
  queue_pairs_[queue_pair].post_receive({message.data() - header, message.size() + header}, local_key(),
                                        uint64_t{queue_pair} << 32U | index);
}

void Link::post_notice_receive(uint32_t queue_pair, uint64_t index) const {
  queue_pairs_[queue_pair].post_receive(notice_slot(queue_pair, index), local_key(),
                                        uint64_t{queue_pair} << 32U | index);
}

std::span<std::byte> Link::notice_slot(uint32_t queue_pair, uint64_t index) const {
  return bytes(word_offset_ + 2 * kLineBytes * (uint64_t{queue_pair} * 2 * kNotices + index), sizeof(Word));
}

std::span<std::byte> Link::credit_slot(uint64_t index) const {
  const size_t header = parameters_.transport == Transport::kUd ? kRouteHeaderBytes : 0;
  const size_t first = 2 * kNotices * parameters_.queue_pairs;
  return bytes(word_offset_ + 2 * kLineBytes * (first + index), sizeof(Word) + (index >= kCreditSends ? header : 0));
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
    fail_call("ibv_post_send of a notice or credit", error);
  }
}

void Link::post_notice(uint32_t queue_pair, uint64_t count, uint64_t id) {
  post_word(queue_pairs_[queue_pair], notice_slot(queue_pair, kNotices + notices_sent_++ % kNotices),
            {queue_pair, count}, id);
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
      peer_.fail(fmt::format("the completion of {} says: {}", what, device_.verbs().wc_status_str(status)));
    }
  }
  return count;
}

}  // namespace ringbolt::tools::perf
