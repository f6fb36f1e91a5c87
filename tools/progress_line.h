#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/condition.h"
#include "base/mutex.h"

namespace ringbolt::tools {

/// How far long work is, on standard error: on a terminal one line that is written again and again, and gone at the
/// end; for a command that started this one, lines that it takes out and shows itself; or a line now and then. Not
/// thread-safe.
class Progress {
 public:
  enum class Style { kNone, kTerminal, kForParent, kLines };
  /// Before a line for the parent.
  static constexpr const char* kMark = "ringbolt-progress: ";

  /// kTerminal if standard error is a terminal, else kNone.
  static Style usual();
  /// kForParent if it has asked for that.
  static Style of_child(bool is_asked_for) { return is_asked_for ? Style::kForParent : Style::kNone; }

  /// `name`: of the command, before kLines, which come each `period_s`.
  explicit Progress(Style style = usual(), std::string name = {}, double period_s = 0.2);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_shown() const { return style_ != Style::kNone; }
  /// Whether show() would print: for those to whom making a text is a cost.
  bool is_due(uint64_t now_ns) const { return is_shown() && now_ns - printed_ns_ >= period_ns_; }
  /// `text`: how far it is now. Printed with the seconds that have passed, if it is time to.
  void show(std::string text);
  /// The seconds go on, and the text stays.
  void tick();
  /// Takes the line off the terminal, for something else that is printed; it comes again with the next.
  void clear();

 private:
  void print(uint64_t now_ns);

  Style style_;
  std::string name_;
  uint64_t period_ns_;
  uint64_t begin_ns_;
  uint64_t printed_ns_;
  std::string text_;
  bool has_line_ = false;
};

/// The same, on a terminal alone, while this process is in calls that may take long or not: from a second on, by a
/// thread of its own, which takes no signals. Whoever ends one prints only afterwards. Thread-safe.
class Waiting {
 public:
  explicit Waiting(std::string text);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// From the next turn on, up to a second later. Thread-safe.
  void show(std::string text);

 private:
  void run();

  base::Mutex mutex_;
  base::Condition over_;
  bool is_over_ RINGBOLT_GUARDED_BY(mutex_) = false;
  std::string text_ RINGBOLT_GUARDED_BY(mutex_);
  std::thread thread_;
};

/// Takes whole lines that begin with `mark` out of `text` and hands them on without it.
/// A mark within a line counts, too: what was there before stays. A line that has no end yet stays, for the next call.
/// An empty mark takes nothing. Each call looks through all of `text`.
void take_marked_lines(std::string& text, std::string_view mark,
                       const std::function<void(const std::string&)>& on_line);

}  // namespace ringbolt::tools
