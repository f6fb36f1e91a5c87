#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bringup/port_card.h"
#include "bringup/survey.h"
#include "circuit/own_ports.h"
#include "verbs/library.h"
#include "verbs/objects.h"

namespace ringbolt::circuit {

/// An open device with one protection domain. Closed by its destructor, after all that was made of it: rails and
/// registrations hold a Devices, and so this.
struct Device {
  Device(const verbs::Library& library, const std::string& name, size_t number_of_it)
      : number(number_of_it), context(library, name), pd(context) {}
  const size_t number;  ///< among those that are open, from 0
  verbs::Context context;
  verbs::ProtectionDomain pd;
};

/// The devices behind this node's ports, each opened once. After its construction of one thread, but for device():
/// ports come up later, devices stay what and where they are for as long as this lives. Those of ports that could carry
/// circuits at once have the lowest numbers. `survey` and `cards` are copied. The library is shared by its handle.
class Devices final : public OwnPorts {
 public:
  /// All ports that there are, also those that can't be used yet. Throws base::Error.
  Devices(const verbs::Library& library, const bringup::Survey& survey);
  /// These ports alone. Throws base::Error.
  Devices(const verbs::Library& library, std::vector<bringup::PortCard> cards);

  /// A vector that never grows after construction: references to its elements stay good, and look_again() writes into
  /// one.
  const std::vector<bringup::PortCard>& cards() const override { return cards_; }
  bool has_port(uint16_t port) const { return port < cards_.size() && cards_[port].capabilities.can_connect(); }
  /// One that can carry circuits, if any can. 0 if none can.
  uint16_t first_port() const;
  /// Of one that can carry circuits. Only after has_port(): another port's device may be closed.
  const Device& device_of(uint16_t port) const { return *places_[port].device; }
  /// Thread-safe.
  const Device& device(size_t number) const { return *devices_[number]; }
  bool is_active(uint16_t port) const override;
  bool look_again(uint16_t port) override;
  std::vector<int> try_candidates(uint16_t port, std::span<const bringup::TrialCandidate> there) override;

 private:
  struct Place {
    std::string name;  ///< of the device
    uint8_t port = 1;
    const Device* device = nullptr;  ///< null: it did not open
    bool is_stuck = false;           ///< its driver does not return: it is left alone
  };
  const Device* open(const std::string& name);
  void add(Place place);

  const verbs::Library library_;
  std::vector<bringup::PortCard> cards_;
  std::vector<Place> places_;  // [port]
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace ringbolt::circuit
