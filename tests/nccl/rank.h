#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "board.h"
#include "options.h"
#include "plugin.h"

namespace ringbolt::test {

/// Between a rank and the parent, a packet each. `rank`: whom a mail goes to, or comes from; whom a strike hits.
struct Packet {
  enum Kind : int { mail, barrier, strike, doomed, go, note, row, failed, late, done };
  struct Header {
    Kind kind = mail;
    int rank = 0;
    int signal = 0;
  };
  Header header{};
  std::string text{};
};

/// Blocks. False when the other end is gone.
bool send_packet(int socket, const Packet& packet);
bool receive_packet(int socket, Packet& packet);
inline constexpr size_t kMostText = 48 * 1024;

/// A thread that does what it is given, in order: the progress thread of a rank. Not thread-safe: for one other thread.
class Worker {
 public:
  explicit Worker(Seat& seat);
  ~Worker();  // waits for what it was given
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The future throws what `work` throws.
  std::future<void> start(std::function<void()> work);
  void run(std::function<void()> work) { start(std::move(work)).get(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> queue_;
  bool is_ending_ = false;
  std::thread thread_;
};

/// A case as one rank sees it, in a process of its own. The thread that runs the case is the service thread: all but
/// the data calls are its to make. Not thread-safe, but for the plugin.
class Rank {
 public:
  Rank(int id, int round, const Options& options, Board& board, int socket);

  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] int size() const { return options_.ranks; }
  [[nodiscard]] int round() const { return round_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] Board& board() { return board_; }
  [[nodiscard]] double patience() const {
    return options_.is_slow ? 2.0 : 1.0;
  }  ///< seconds that the plugin has to react

  /// Loads the plugin and initializes one context; most cases start with both done.
  void load();
  void unload();
  Plugin& plugin() { return *plugin_; }
  [[nodiscard]] void* context() const { return context_; }
  /// For cases with several; the one set last is finalized in the end.
  void set_context(void* context) { context_ = context; }
  /// As communicators come and go while the library stays: before v11 nothing happens.
  void renew_context();
  Worker& progress();
  /// Ends the progress thread, so that its stack is no mapping when those are counted.
  void end_progress() { progress_.reset(); }

  /// Says where this rank is, for the report of a hang. A literal.
  void step(const char* where) { board_.seats[kServiceSeat].step = where; }

  void post(int to, const std::string& text);
  std::string take(int from);  ///< in order of posting
  /// Waits for all ranks that are alive and haven't ended the case.
  void barrier();
  /// Waits likewise for all but `victim`, which then has been sent `signal`.
  void strike(int victim, int signal);
  [[noreturn]] void wait_for_the_end();  ///< a victim's last call
  [[noreturn]] void die();               ///< by its own hand, without any goodbye

  void note(const std::string& text);  ///< goes into the case's line; the same from several ranks appears once
  void row(const std::string& text);   ///< goes below it

 private:
  void wait_for_go();
  Packet next();

  int id_;
  int round_;
  const Options& options_;
  Board& board_;
  int socket_;
  std::map<int, std::deque<std::string>> mail_;
  std::unique_ptr<Plugin> plugin_;
  void* context_ = nullptr;
  std::unique_ptr<Worker> progress_;
};

}  // namespace ringbolt::test
