#pragma once

#include <cstdint>

namespace ringbolt::fault {

/// What a fault does. Listed by what it befalls; see subject_of().
enum class Kind : uint8_t {
  // Frames: packets on a network.
  loss,       ///< the frame is gone
  duplicate,  ///< it comes twice
  reorder,    ///< frames behind it overtake it
  corrupt,    ///< bits of it are turned, and its checksum no longer fits
  truncate,   ///< its end is missing
  delay,      ///< it comes later
  // The step to RTR.
  rtr_errno,  ///< is refused
  rtr_block,  ///< takes its time
  // Calls that make objects.
  pd_null,  ///< there is no protection domain
  exhaust,  ///< there is no more of an object than so many
  // Destroying a queue pair.
  destroy_hang,  ///< takes its time
  // Completions of sends.
  completion_error,    ///< they have a status
  completion_late,     ///< come later, and those behind them
  completion_missing,  ///< never come
  // Messages, and one-sided operations, on whatever link, as they are posted.
  message_loss,  ///< the whole message is gone
  bitflip,       ///< bits of its payload are turned, and no checksum tells
  shape,         ///< the cable is slower or longer
  rnr,           ///< its receiver says that it has no receive
  early,         ///< it completes before it leaves
  // Messages as they are received.
  receive_error,   ///< the receive ends with a status
  frame_mismatch,  ///< the receive ends as if the frame counts of both sides differed
  // Receives as they are posted.
  silent_overrun,  ///< one too many is accepted, and goes wrong later
  // What holds for a while, not for one message.
  coalesce,      ///< after some idle time receives complete at long ticks only
  qp_age,        ///< a queue pair without traffic goes silent
  flap,          ///< the cable goes down and up
  unplug,        ///< the cable is pulled, and maybe plugged back in
  frozen,        ///< the machine does nothing any more
  cross_cables,  ///< two cables of a machine are plugged the wrong way around
  // What a device looks like, from the next program on.
  gid_shuffle,     ///< the GID table has another order
  gid_empty,       ///< it has no entries
  rename_devices,  ///< the devices have other names
  // Asking the device. From here on at the end, since the numbers of kinds are part of what seeds give.
  query_hang,  ///< takes its time
  // What holds for a while.
  gid_change,  ///< an address of the port is away
  // Calls of the data path, and registering memory.
  call_errno,  ///< are refused
};
// plan_words.cpp has a table of all kinds up to this one, and bits of a uint64_t for each: 64 kinds at most.
inline constexpr Kind kLastKind = Kind::call_errno;

/// What a kind befalls: each has a count of its own.
enum class Subject : uint8_t {
  frame,
  rtr,
  object,
  destroy,
  query,
  call,
  completion,
  message,
  receive,
  posting,
  state,
  look
};
inline constexpr unsigned kSubjects = 12;

/// By ranges of the enumeration, so that a kind put in the middle would move others to another subject; a new one
/// goes to the end, with a line here.
constexpr Subject subject_of(Kind kind) {
  return kind <= Kind::delay                ? Subject::frame
         : kind <= Kind::rtr_block          ? Subject::rtr
         : kind <= Kind::exhaust            ? Subject::object
         : kind <= Kind::destroy_hang       ? Subject::destroy
         : kind <= Kind::completion_missing ? Subject::completion
         : kind <= Kind::early              ? Subject::message
         : kind <= Kind::frame_mismatch     ? Subject::receive
         : kind <= Kind::silent_overrun     ? Subject::posting
         : kind <= Kind::cross_cables       ? Subject::state
         : kind <= Kind::rename_devices     ? Subject::look
         : kind <= Kind::query_hang         ? Subject::query
         : kind <= Kind::gid_change         ? Subject::state
                                            : Subject::call;
}
/// It holds, or it does not: no dice are thrown for each message. Subjects from `state` on are those: keep `state`
/// and `look` last.
constexpr bool is_state(Kind kind) { return subject_of(kind) >= Subject::state; }

/// What a device makes of a pulled cable.
enum class Unplug : uint8_t {
  hang,        ///< nothing passes, and nobody says so
  port_event,  ///< the port goes down, with an event
  flush,       ///< and connected queue pairs go to the state ERR
  abort,       ///< and the program is ended when it posts a receive
};

/// Which call is refused.
enum class Call : uint8_t { post_send, post_recv, poll_cq, reg_mr };
inline constexpr unsigned kCalls = 4;

/// What can run out.
enum class Object : uint8_t { qp, pd, cq, mr, dma };
inline constexpr unsigned kObjects = 5;

}  // namespace ringbolt::fault
