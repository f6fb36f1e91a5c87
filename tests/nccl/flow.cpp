#include "flow.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace ringbolt::test {
namespace {

constexpr size_t kPage = 4096;

// Slots keep the alignment of NCCL's: its buffers start on pages, their steps on 128 bytes.
size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::string stream_text(int from, int to, int channel) {
  return std::to_string(from) + ">" + std::to_string(to) + " channel " + std::to_string(channel) + ": ";
}

}  // namespace

Buffer::Buffer(size_t bytes) : bytes_(rounded_up(std::max<size_t>(bytes, 1), kPage)) {
  memory_.reset(static_cast<unsigned char*>(std::aligned_alloc(kPage, bytes_)));
  if (!memory_) {
    throw std::bad_alloc();
  }
  std::memset(memory_.get(), 0, bytes_);
}

size_t Stream::largest() const { return *std::max_element(sizes.begin(), sizes.end()) + posted_more; }

Sender::Sender(Rank& rank, const Link& link, Stream stream)
    : rank_(rank),
      comm_(link.send),
      channel_(link.channel),
      stream_(std::move(stream)),
      stride_(rounded_up(stream_.largest() + 1, 128)),
      buffer_(stride_ * stream_.depth),
      requests_(stream_.depth) {
  expect(rank_.plugin().reg_mr(comm_, buffer_.data(), buffer_.bytes(), abi::kHostMemory, &region_), "regMr");
}

bool Sender::step() {
  bool moved = false;
  while (next_ < stream_.count && next_ - completed_ < stream_.depth) {
    unsigned char* const data = buffer_.data() + next_ % stream_.depth * stride_;
    const size_t bytes = stream_.size_of(next_);
    if (!is_filled_) {  // once, not again at each refusal
      fill(data, bytes, {rank_.id(), channel_, next_});
      is_filled_ = true;
    }
    void*& request = requests_[next_ % stream_.depth];
    if (const int code = rank_.plugin().isend(comm_, data, bytes, rank_.id(), region_, &request); code != 0) {
      expect(code, "isend with " + std::to_string(next_ - completed_) + " outstanding");
    }
    if (request == nullptr) {
      ++refusals_;
      break;
    }
    is_filled_ = false;
    ++next_;
    most_ = std::max(most_, static_cast<size_t>(next_ - completed_));
    moved = true;
  }
  while (completed_ < next_) {
    int done = 0;
    if (const int code = rank_.plugin().test(requests_[completed_ % stream_.depth], &done, nullptr); code != 0) {
      expect(code, "test of a send");
    }
    if (done == 0) {
      break;
    }
    // "Done" lets NCCL overwrite the buffer: what still reads it then sends this.
    std::memset(buffer_.data() + completed_ % stream_.depth * stride_, 0xee,
                std::min<size_t>(stream_.size_of(completed_), 64 * 1024));
    ++completed_;
    moved = true;
  }
  return moved;
}

void Sender::end() { expect(rank_.plugin().dereg_mr(comm_, region_), "deregMr"); }

Receiver::Receiver(Rank& rank, const Link& link, Stream stream)
    : rank_(rank),
      comm_(link.receive),
      peer_(link.peer),
      channel_(link.channel),
      stream_(std::move(stream)),
      stride_(rounded_up(stream_.largest() + kCanaryBytes, 128)),
      buffer_(stride_ * stream_.depth),
      requests_(stream_.depth) {
  expect(rank_.plugin().reg_mr(comm_, buffer_.data(), buffer_.bytes(), abi::kHostMemory, &region_), "regMr");
}

bool Receiver::post(size_t limit) {
  bool moved = false;
  while (next_ < stream_.count && outstanding() < std::min(limit, stream_.depth)) {
    unsigned char* const buffer = buffer_.data() + next_ % stream_.depth * stride_;
    void* data = buffer;
    size_t bytes = stream_.posted_for(next_);
    int tag = peer_;
    const size_t expected = stream_.size_of(next_);
    fill_canary(buffer + expected, bytes - expected + kCanaryBytes);
    void*& request = requests_[next_ % stream_.depth];
    if (const int code = rank_.plugin().irecv(comm_, 1, &data, &bytes, &tag, &region_, &request); code != 0) {
      expect(code, "irecv with " + std::to_string(outstanding()) + " outstanding");
    }
    if (request == nullptr) {
      break;
    }
    ++next_;
    moved = true;
  }
  return moved;
}

bool Receiver::test_one(uint64_t number) {
  int done = 0;
  // NCCL adds up all entries: those that belong to no buffer must stay as they were.
  std::array<int, abi::kMostSizes> sizes{};
  sizes.fill(-1);
  if (const int code = rank_.plugin().test(requests_[number % stream_.depth], &done, sizes.data()); code != 0) {
    expect(code, "test of a receive");
  }
  if (done == 0) {
    return false;
  }
  verify(number, sizes.data());
  return true;
}

// Only the oldest is tested, as NCCL does: completion in another order would show as a wrong message.
bool Receiver::collect() {
  bool moved = false;
  while (completed_ < next_ && test_one(completed_)) {
    ++completed_;
    moved = true;
  }
  return moved;
}

void Receiver::verify(uint64_t number, const int* sizes) {
  const MessageId id{peer_, channel_, number};
  const std::string who = stream_text(peer_, rank_.id(), channel_) + text_of(id);
  const unsigned char* const buffer = buffer_.data() + number % stream_.depth * stride_;
  const size_t bytes = static_cast<size_t>(sizes[0]);
  if (sizes[0] < 0 || sizes[1] != -1) {
    throw Failure(who + ": test wrote " + std::string(sizes[0] < 0 ? "no size" : "more sizes than one"));
  }
  if (bytes != stream_.size_of(number)) {
    throw Failure(who + ": size " + std::to_string(bytes) + ", not " + std::to_string(stream_.size_of(number)) +
                  " (posted: " + std::to_string(stream_.posted_for(number)) + ")");
  }
  if (const auto wrong = first_wrong(buffer, bytes, id)) {
    throw Failure(who + ": byte " + std::to_string(*wrong) + " of " + std::to_string(bytes) + " is wrong");
  }
  // The whole of what lies behind the message, in the posted buffer and beyond it.
  const size_t posted = stream_.posted_for(number);
  if (const auto dead = first_dead(buffer + bytes, posted - bytes + kCanaryBytes)) {
    throw Failure(who + ": " + std::to_string(bytes) + " bytes, and byte " + std::to_string(bytes + *dead) +
                  " was written to (posted: " + std::to_string(posted) + ")");
  }
  rank_.board().received_bytes[static_cast<size_t>(peer_)].fetch_add(bytes, std::memory_order_relaxed);
}

bool Receiver::step() {
  const bool posted = post(stream_.depth);
  return collect() || posted;
}

void Receiver::end() { expect(rank_.plugin().dereg_mr(comm_, region_), "deregMr"); }

void drive(std::vector<Sender>& senders, std::vector<Receiver>& receivers, double limit_s) {
  const uint64_t begin = now_ns();
  while (true) {
    bool moved = false;
    bool is_done = true;
    for (Sender& sender : senders) {
      moved = (!sender.is_done() && sender.step()) || moved;
      is_done = is_done && sender.is_done();
    }
    for (Receiver& receiver : receivers) {
      moved = (!receiver.is_done() && receiver.step()) || moved;
      is_done = is_done && receiver.is_done();
    }
    if (is_done) {
      return;
    }
    // The clock is read only when nothing moves, which is when it matters.
    if (!moved) {
      if (seconds_since(begin) > limit_s) {
        throw Failure("messages still under way after " + std::to_string(limit_s) + " s");
      }
      yield_now();
    }
  }
}

void run_streams(Rank& rank, std::vector<Link>& links, const Stream& stream, double limit_s) {
  rank.step("exchange messages");
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  for (const Link& link : links) {
    senders.emplace_back(rank, link, stream);
    receivers.emplace_back(rank, link, stream);
  }
  rank.progress().run([&] { drive(senders, receivers, limit_s); });
  for (Sender& sender : senders) {
    sender.end();
  }
  for (Receiver& receiver : receivers) {
    receiver.end();
  }
}

void greet(Rank& rank, std::vector<Link>& links, size_t bytes) {
  run_streams(rank, links, {.sizes = {bytes}, .count = 3, .depth = 2}, 10);
}

}  // namespace ringbolt::test
