#include "progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/start_thread.h"
#include "text_wrap.h"

namespace ringbolt::tools {
namespace {

/// A line that wraps could not be written over.
std::string fitting(const std::string& line) {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return std::string(is_known ? first_columns(line, size.ws_col - 1U) : line);
}

}  // namespace

Progress::Style Progress::usual() { return ::isatty(STDERR_FILENO) == 1 ? Style::kTerminal : Style::kNone; }

Progress::Progress(Style style, std::string name, double period_s)
    : style_(style),
      name_(std::move(name)),
      period_ns_(static_cast<uint64_t>(period_s * 1e9)),
      begin_ns_(base::now_ns()),
      printed_ns_(style == Style::kLines ? begin_ns_ : 0) {}

void Progress::show(std::string text) {
  if (is_shown()) {
    text_ = std::move(text);
    tick();
  }
}

void Progress::tick() {
  if (const uint64_t now = base::now_ns(); !text_.empty() && is_due(now)) {
    print(now);
  }
}

void Progress::print(uint64_t now_ns) {
  printed_ns_ = now_ns;
  const std::string line = fmt::format("{} s: {}", (now_ns - begin_ns_) / 1'000'000'000, text_);
  switch (style_) {
    case Style::kTerminal:
      base::say(fmt::format("\r{}\x1b[K", fitting(line)));
      has_line_ = true;
      break;
    case Style::kForParent:
      base::say(fmt::format("{}{}\n", kMark, text_));
      break;
    case Style::kLines:
      base::say(fmt::format("{}: {}\n", name_, line));
      break;
    case Style::kNone:
      break;
  }
}

void Progress::clear() {
  if (std::exchange(has_line_, false)) {
    base::say("\r\x1b[K");
    printed_ns_ = 0;
  }
}

Waiting::Waiting(std::string text) : text_(std::move(text)) {
  if (Progress::usual() == Progress::Style::kTerminal) {
    thread_ = base::start_thread([this] { run(); });
  }
}

Waiting::~Waiting() {
  {
    const base::LockGuard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Waiting::show(std::string text) {
  const base::LockGuard lock(mutex_);
  text_ = std::move(text);
}

void Waiting::run() {
  constexpr std::chrono::milliseconds kUnnoticed(1000);
  constexpr std::chrono::milliseconds kPeriod(200);
  Progress progress;
  const base::LockGuard lock(mutex_);
  const auto is_over = [this]() RINGBOLT_REQUIRES(mutex_) { return is_over_; };
  for (auto most = kUnnoticed; !over_.wait_for(mutex_, most, is_over); most = kPeriod) {
    progress.show(text_);
  }
}

void take_marked_lines(std::string& text, std::string_view mark,
                       const std::function<void(const std::string&)>& on_line) {
  for (size_t at = mark.empty() ? std::string::npos : text.find(mark); at != std::string::npos; at = text.find(mark)) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      return;
    }
    const size_t begin = at + mark.size();
    on_line(text.substr(begin, end - begin));
    text.erase(at, end + 1 - at);
  }
}

}  // namespace ringbolt::tools
