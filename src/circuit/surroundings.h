#pragma once

#include <exception>
#include <memory>
#include <set>
#include <string>

#include "circuit/control.h"
#include "circuit/devices.h"
#include "circuit/endings.h"
#include "circuit/log.h"
#include "circuit/network.h"
#include "circuit/registrations.h"
#include "circuit/ways.h"
#include "membership/membership.h"

namespace ringbolt::circuit {

/// What the ends of circuits work with. Of the endpoint's thread alone, but for `log` and `membership`. Lives as long
/// as the endpoint; ends of circuits get it with each call and keep no reference.
struct Surroundings {
  std::shared_ptr<const Devices> devices;  ///< circuits that outlive the endpoint keep them
  Network& network;
  membership::Membership& membership;
  Log log;
  Endings& endings;
  std::shared_ptr<Registrations> registrations = {};
  Ways ways = {};
  std::set<std::string> said = {};  ///< at Level::warning, by say_once()

  /// The first time as a warning, which is seen by default; then for those who want to know all.
  void say_once(const std::string& text) { log(said.insert(text).second ? Level::warning : Level::info, text); }
  /// Does what the thread has to do. What is thrown, for want of memory say, is told, and ends this alone: a program
  /// must not die of it in a thread that it does not know.
  template <class Work>
  void survive(Work&& work) noexcept try {
    try {
      work();
    } catch (const std::exception& error) {
      say_once(error.what());
    }
  } catch (...) {  // no memory for words
  }

  // May be lost where there is no way just now; who needs an answer asks again.
  void send(MemberId to, const Control& control) const { membership.send(to, kind_of(control), emit(control)); }
  /// To all on a path but this member; to this one, too, where both ends are its own.
  void send_along(const Path& path, const Control& control) const {
    const bool has_both_ends = path.front().member == path.back().member;
    for (const Hop& hop : path) {
      if (hop.member != membership.id() || (has_both_ends && &hop == &path.back())) {
        send(hop.member, control);
      }
    }
  }
  /// "n2 (pid 4711)", as the member calls itself.
  std::string name_of(MemberId member) const {
    const Network::Known* const known = network.find(member);
    return known == nullptr ? "a peer that is not known yet" : known->name;
  }
};

}  // namespace ringbolt::circuit
