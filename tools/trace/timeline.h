#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/trace_file.h"

namespace ringbolt::tools::trace_command {

/// A recorder's file, and what is known of its process.
struct Recording {
  trace::TraceFile file;
  std::string path;
  bool is_running = false;

  /// "running", "ended", "killed": it has not said that it ends, and is gone.
  std::string fate() const { return is_running ? "running" : file.has_ended ? "ended" : "killed"; }
  /// "client (4711)", with the node before it.
  std::string label() const;
};

/// A work request, from its post to the poll of its completion.
struct Span {
  size_t posted = 0;               ///< places in Side::events
  std::optional<size_t> polled{};  ///< none: it is under way
  bool is_send = false;
  bool is_dropped = false;  ///< its queue pair was reset
};

/// Something that happened to a queue pair.
struct Moment {
  uint64_t ns = 0;
  trace::Record record{};
};

/// One end of a connection, in order.
struct Side {
  size_t recording = 0;  ///< place among the recordings
  trace::QueuePair pair{};
  std::vector<Moment> events{};  ///< as the recorder wrote them, the oldest first
  std::vector<Span> spans{};
  std::optional<size_t> peer{};  ///< the other end, if it was recorded, too

  /// Sends, or receives, that nobody has polled the end of; in order.
  std::vector<const Span*> under_way(bool sends) const;
};

/// A message of `from` that `to` has polled the receive of: places of sides, and in their events.
struct Arrow {
  size_t from = 0;
  size_t to = 0;
  size_t sent = 0;
  size_t received = 0;
};

/// What some processes did, by one clock: that of the host, where all are of one host; else each host's own.
struct Timeline {
  std::vector<Recording> recordings{};
  std::vector<Side> sides{};
  std::vector<Arrow> arrows{};
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

/// One end or both of a connection.
struct Conversation {
  size_t left = 0;  ///< place of a side
  std::optional<size_t> right{};
};
/// All of them, by their first side. Thread-safe.
std::vector<Conversation> conversations_of(const Timeline& timeline);

/// An event of one of its sides.
struct Step {
  size_t side = 0;
  size_t event = 0;
};
/// What happened there by time, from the timeline's beginning on; the last `most` before `until_ns`, all if that is 0.
std::vector<Step> steps_of(const Timeline& timeline, const Conversation& of, size_t most,
                           uint64_t until_ns = UINT64_MAX);

/// Which of it is wanted.
struct Selection {
  std::optional<uint32_t> queue_pair{};
  std::optional<uint32_t> pid{};
  std::optional<double> since_s{};  ///< before the last event of all
};

/// Reads the files; one that is no timeline is an error, or is passed over if `is_lenient`. Throws base::Error.
/// Reads each whole, up to 4 GiB: memory for the largest, and for all events.
std::vector<Recording> read_recordings(const std::vector<std::string>& paths, bool is_lenient);

/// The other end of each chosen one is chosen, too. Pure, but for a look at the clock.
/// Queue pairs without an event are left out. Without any, begin_ns is above end_ns.
Timeline make_timeline(std::vector<Recording> recordings, const Selection& selection);

/// "client.c:88 in send_next()"; empty: not known.
std::string place_text(const Recording& recording, uint64_t address);
/// What an explanation or a finding said whose record that is; empty: it was overwritten, or the record is none.
std::string told_text(const Recording& recording, const trace::Record& record);
/// Time since the timeline began, in microseconds.
double since_us(const Timeline& timeline, uint64_t ns);
/// "RC".
std::string type_name(uint8_t type);

}  // namespace ringbolt::tools::trace_command
