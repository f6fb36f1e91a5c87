#include "pair/peer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text_fields.h"
#include "failure.h"
#include "stop.h"

namespace ringbolt::tools::pair {
namespace {

constexpr std::string_view kFailed = "failed";
constexpr std::string_view kStop = "stop\n";
/// A peer that sends more than anybody awaits is no peer of ours.
constexpr size_t kMostTexts = 64;
/// Of one look at what has come: then the caller looks at its deadline, however much more a peer sends.
constexpr size_t kMostLookBytes = size_t{64} << 10U;

void wait_readable(int fd, int most_ms) {
  pollfd polled{fd, POLLIN, 0};
  ::poll(&polled, 1, most_ms);
}

// Raised with any change of what ends tell each other.
constexpr std::string_view kVersion = "3";

/// Of a line "name value".
std::string_view value_in(std::string_view text, const std::string& name) {
  const std::string begin = "\n" + name + " ";
  const size_t at = text.find(begin);
  if (at == std::string_view::npos) {
    return "nothing";
  }
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, std::min(rest.find('\n'), size_t{200}));
}

std::string magic_of(std::string_view command) { return fmt::format("ringbolt {} ", command); }

}  // namespace

void Channel::send_text(std::string_view text) {
  if (text.size() > kMostTextBytes) {
    throw ProbeFailure(
        fmt::format("{} bytes are more than the {} of one text between two ends", text.size(), kMostTextBytes));
  }
  const auto length = static_cast<uint32_t>(text.size());
  std::string frame(sizeof length, '\0');
  // Both ends run on machines of one byte order, or the length is beyond kMostTextBytes for the other.
  std::memcpy(frame.data(), &length, sizeof length);
  frame += text;
  // What poll() calls writable takes so much without blocking, be it a socket or a pipe.
  constexpr size_t kPieceBytes = 4096;
  constexpr int kPatienceMs = 10'000;
  for (size_t at = 0; at < frame.size();) {
    pollfd polled{write_fd_, POLLOUT, 0};
    const int ready = ::poll(&polled, 1, kPatienceMs);
    if (ready == 0) {
      throw ProbeFailure("the other end takes nothing for 10 s", true);
    }
    if (ready < 0 && errno == EINTR) {
      continue;  // a write that nobody has promised room for may block
    }
    const ssize_t put = ::write(write_fd_, frame.data() + at, std::min(kPieceBytes, frame.size() - at));
    if (put < 0 && errno != EINTR && errno != EAGAIN) {
      throw ProbeFailure("the other end is gone", true);
    }
    at += put > 0 ? static_cast<size_t>(put) : 0;
  }
}

std::optional<std::string> Channel::look(size_t& most_bytes) {
  uint32_t length = 0;
  while (true) {
    if (begun_.size() >= sizeof length) {
      std::memcpy(&length, begun_.data(), sizeof length);
      if (length > kMostTextBytes) {
        throw ProbeFailure("the other end does not speak as ringbolt does");
      }
      if (begun_.size() >= sizeof length + length) {
        std::string text = begun_.substr(sizeof length, length);
        begun_.erase(0, sizeof length + length);
        return text;
      }
    }
    pollfd polled{read_fd_, POLLIN, 0};
    if (most_bytes == 0 || ::poll(&polled, 1, 0) <= 0) {
      return std::nullopt;
    }
    char buffer[4096];
    const ssize_t got = ::read(read_fd_, buffer, std::min(sizeof buffer, most_bytes));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      return std::nullopt;
    }
    if (got <= 0) {
      throw ProbeFailure("the other end is gone", true);
    }
    begun_.append(buffer, static_cast<size_t>(got));
    most_bytes -= static_cast<size_t>(got);
  }
}

void Peer::tell(std::string_view kind, std::string_view text) {
  try {
    channel_.send_text(fmt::format("{}\n{}", kind, text));
  } catch (const ProbeFailure& failure) {
    fail("{} (telling it \"{}\")", failure.what(), kind);
  }
}

void Peer::tell(std::string_view kind, const std::vector<uint64_t>& numbers) {
  tell(kind, fmt::format("{}", fmt::join(numbers, " ")));
}

std::vector<uint64_t> Peer::numbers_in(std::string_view text, size_t count) {
  std::vector<uint64_t> numbers(count);
  const bool is_sound = std::ranges::all_of(numbers, [&](uint64_t& one) { return base::take_number(text, one); });
  if (!is_sound || !text.empty()) {
    fail("the figures of the other end make no sense");
  }
  return numbers;
}

void Peer::tell_working() {
  constexpr uint64_t kOftenNs = 1'000'000'000;
  const uint64_t now = base::now_ns();
  if (now - told_ns_ >= kOftenNs) {
    told_ns_ = now;
    tell("working", "");
  }
}

void Peer::take_texts(std::string_view what) {
  const auto end_with = [&](const std::string& report) { end_.emplace(report, true); };
  size_t most_bytes = kMostLookBytes;
  try {
    while (!end_) {
      std::optional<std::string> text = channel_.look(most_bytes);
      if (!text) {
        return;
      }
      for (const std::string& kind : cumulative_) {
        if (text->starts_with(kind + "\n")) {
          static_cast<void>(take(kind));
        }
      }
      if (*text == "working\n") {
        heard_ns_ = base::now_ns();
      } else if (*text == kStop) {
        knows_stop_ = true;
        stop();
      } else if (text->substr(0, kFailed.size() + 1) == std::string(kFailed) + "\n") {
        end_with(fmt::format("{} failed: {}", name_, base::printable(text->substr(kFailed.size() + 1))));
      } else if (texts_.size() >= kMostTexts) {
        end_with(fmt::format("{} does not speak as this end does", name_));
      } else {
        texts_.push_back(std::move(*text));
      }
    }
  } catch (const ProbeFailure& failure) {
    end_with(failure.is_echo()
                 ? fmt::format("{} is gone: its control connection closed while this end awaited {}", name_, what)
                 : fmt::format("{}: {}", name_, failure.what()));
  }
}

std::optional<std::string> Peer::take(std::string_view kind) {
  const auto found = std::find_if(texts_.begin(), texts_.end(), [&](const std::string& text) {
    return text.size() > kind.size() && text[kind.size()] == '\n' && text.substr(0, kind.size()) == kind;
  });
  if (found == texts_.end()) {
    return std::nullopt;
  }
  std::string text = found->substr(kind.size() + 1);
  texts_.erase(found);
  return text;
}

void Peer::pass_stop_on() {
  if (is_stopped() && !knows_stop_) {
    knows_stop_ = true;
    tell("stop", "");
  }
}

std::optional<std::string> Peer::look(std::string_view kind, std::string_view what) {
  pass_stop_on();
  if (std::optional<std::string> text = take(kind)) {
    return text;
  }
  take_texts(what);
  std::optional<std::string> text = take(kind);
  if (!text && end_) {
    throw *end_;
  }
  return text;
}

std::string Peer::await(std::string_view kind, std::string_view what) {
  const uint64_t begin = base::now_ns();
  while (true) {
    if (std::optional<std::string> text = look(kind, what)) {
      return *text;
    }
    const uint64_t since = std::max(begin, heard_ns_);
    const uint64_t left = left_ns(since);
    if (left == 0) {
      give_up(what, base::now_ns() - since);
    }
    constexpr uint64_t kMostMs = 3'600'000;  // of one wait: as an int it would be negative beyond 24 days
    wait_readable(fd(), static_cast<int>(std::min(left / 1'000'000 + 1, kMostMs)));
  }
}

uint64_t Peer::left_ns(uint64_t since_ns) const {
  const uint64_t now = base::now_ns();
  const uint64_t waited = now - std::min(since_ns, now);
  return std::min(timeout_ns_ - std::min(waited, timeout_ns_), end_ns_ - std::min(now, end_ns_));
}

void Peer::tell_failure(const std::string& problem) noexcept {
  try {
    // Its beginning says what it is; a text that is too long would say nothing.
    channel_.send_text(fmt::format("{}\n{}", kFailed, problem.substr(0, Channel::kMostTextBytes / 2)));
  } catch (const std::exception&) {
    // It is gone, or does not listen: then it has noticed already, or never will.
  }
}

void Peer::fail_by(const std::string& problem) {
  // The peer's own failure may be on its way, and names the cause.
  constexpr uint64_t kMomentNs = 500'000'000;
  const uint64_t end = base::now_ns() + kMomentNs;
  while (base::now_ns() < end) {
    take_texts("its part");
    if (end_) {
      throw ProbeFailure(fmt::format("{} (here: {})", end_->what(), problem), true);
    }
    wait_readable(fd(), 10);
  }
  throw ProbeFailure(problem);
}

void Peer::give_up(std::string_view what, uint64_t waited_ns) const {
  throw ProbeFailure(fmt::format("waited {:.1f} s for {}{}; {} is connected and silent (--timeout gives it longer)",
                                 static_cast<double>(waited_ns) / 1e9, what,
                                 base::now_ns() >= end_ns_ ? ", until the time for all was over" : "", name_));
}

std::string emit_hello(std::string_view command, const std::vector<HelloEntry>& mine) {
  std::string text = fmt::format("{}{}\n", magic_of(command), kVersion);
  for (const HelloEntry& entry : mine) {
    text += fmt::format("{} {}\n", entry.name, entry.value);
  }
  return text;
}

std::string hello_objection(std::string_view command, const std::vector<HelloEntry>& mine, std::string_view theirs) {
  const std::string magic = magic_of(command);
  if (theirs.substr(0, magic.size()) != magic) {
    return fmt::format("what answers there is not ringbolt {}", command);
  }
  const std::string_view version = theirs.substr(magic.size(), theirs.find('\n') - magic.size());
  if (version != kVersion) {
    return fmt::format(
        "the other end speaks version {} of this measurement, this one {}: use the same Ringbolt at both",
        base::printable(std::string(version.substr(0, 20))), kVersion);
  }
  std::string differences;
  for (const HelloEntry& entry : mine) {
    const std::string_view other = value_in(theirs, entry.name);
    if (other != entry.value) {
      differences += fmt::format("{}{} ({}) is {} here and {} at the other end", differences.empty() ? "" : "; ",
                                 entry.name, entry.flag, entry.value, base::printable(std::string(other)));
    }
  }
  return differences.empty() ? "" : "both ends need the same parameters: " + differences;
}

void agree(std::string_view command, const std::vector<HelloEntry>& mine, Peer& peer) {
  peer.tell("hello", emit_hello(command, mine));
  const std::string objection = hello_objection(command, mine, peer.await("hello", "its parameters"));
  if (!objection.empty()) {
    throw UsageError(fmt::format("{}: {}", peer.name(), objection));
  }
}

}  // namespace ringbolt::tools::pair
