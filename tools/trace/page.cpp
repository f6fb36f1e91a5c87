#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "heat_map.h"
#include "trace/report.h"
#include "trace/words.h"

namespace ringbolt::tools::trace_command {
namespace {

using trace::Kind;

constexpr const char* kPageStyle =
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--faint:#777;--line:#ddd;--bad:#b00;--message:#06c;"
    "--packet:#a60}"
    "@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#161616;--faint:#999;--line:#444;--bad:#f66;"
    "--message:#6af;--packet:#fa5}}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em;color:var(--ink);"
    "background:var(--paper)}pre{white-space:pre-wrap;border-left:3px solid var(--bad);padding:.3em 1em}"
    ".chart{overflow-x:auto}svg text{font:12px ui-monospace,monospace;fill:var(--ink)}svg "
    ".time,.note{fill:var(--faint);"
    "color:var(--faint)}svg .bad{fill:var(--bad)}svg line.row{stroke:var(--line)}svg line.life{stroke:var(--faint)}"
    "svg .message{stroke:var(--message);fill:none}svg .packet{stroke:var(--packet);fill:none;stroke-dasharray:4 2}"
    "svg marker path{fill:var(--ink)}";

// Of a chart, in pixels.
constexpr double kRow = 20;
constexpr double kHead = 30;
constexpr double kLeft = 100;
constexpr double kLeftLife = 520;
constexpr double kRightLife = 640;
constexpr double kRight = 655;
constexpr double kWidth = 1080;
constexpr size_t kMostLetters = 56;

bool is_bad(const trace::Record& record) {
  switch (record.kind) {
    case Kind::refused:
    case Kind::packet_dropped:
    case Kind::starved:
    case Kind::not_ready:
    case Kind::resent:
    case Kind::timed_out:
    case Kind::sequence_error:
    case Kind::fault:
    case Kind::words:
      return true;
    case Kind::completion_made:
    case Kind::completion_polled:
      return record.status != 0;
    case Kind::state:
      return record.code == 6 || record.code == 5;  // ERR, SQE
    default:
      return false;
  }
}

/// One connection's steps, drawn from the top down: its ends left and right, what went between them as arrows.
class Chart {
 public:
  Chart(const Timeline& timeline, const Conversation& of, std::vector<Step> steps)
      : timeline_(timeline), of_(of), steps_(std::move(steps)) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      rows_[{steps_[i].side, steps_[i].event}] = i;
    }
  }

  std::string svg() const {
    const double height = kHead + kRow * static_cast<double>(steps_.size()) + 10;
    std::string text = fmt::format(
        "<div class=\"chart\"><svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n"
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
        kWidth, height);
    text += head(of_.left, kLeft) + (of_.right ? head(*of_.right, kRight) : "");
    for (const double x : {kLeftLife, kRightLife}) {
      text += fmt::format("<line class=\"life\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/>\n", x, kHead, height - 5);
    }
    for (size_t i = 0; i < steps_.size(); ++i) {
      text += row(i);
    }
    for (const Arrow& one : timeline_.arrows) {
      text += line("message", {one.from, one.sent}, {one.to, one.received});
    }
    return text + packets() + "</svg></div>\n";
  }

 private:
  static double y(size_t row) { return kHead + kRow * (static_cast<double>(row) + 0.5); }
  bool is_left(size_t side) const { return side == of_.left; }
  const trace::Record& record(const Step& step) const { return timeline_.sides[step.side].events[step.event].record; }

  std::string head(size_t side, double x) const {
    const Side& one = timeline_.sides[side];
    return fmt::format("<text x=\"{}\" y=\"16\" font-weight=\"bold\">{:#x}, {}</text>\n", x, one.pair.qpn,
                       html_escaped(timeline_.recordings[one.recording].label()));
  }

  std::string row(size_t index) const {
    const Step& step = steps_[index];
    const Side& side = timeline_.sides[step.side];
    const Moment& moment = side.events[step.event];
    std::string words = trace::words_of(moment.record);
    std::string whole = words;
    if (const std::string place = place_text(timeline_.recordings[side.recording], moment.record.place);
        !place.empty()) {
      whole += ", at " + place;
    }
    if (words.size() > kMostLetters) {
      words.resize(kMostLetters);
      words += "...";
    }
    return fmt::format(
        "<text class=\"time\" x=\"90\" y=\"{0}\" text-anchor=\"end\">{1:.3f}</text>"
        "<text x=\"{2}\" y=\"{0}\"{3}>{4}<title>{5}</title></text>\n",
        y(index) + 4, since_us(timeline_, moment.ns), is_left(step.side) ? kLeft : kRight,
        is_bad(moment.record) ? " class=\"bad\"" : "", html_escaped(words), html_escaped(whole));
  }

  std::string line(const char* what, std::pair<size_t, size_t> from, std::pair<size_t, size_t> to) const {
    const auto begin = rows_.find(from);
    const auto end = rows_.find(to);
    if (begin == rows_.end() || end == rows_.end() || from.first == to.first) {
      return "";
    }
    const bool goes_right = is_left(from.first);
    return fmt::format("<line class=\"{}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" marker-end=\"url(#tip)\"/>\n", what,
                       goes_right ? kLeftLife : kRightLife, y(begin->second), goes_right ? kRightLife : kLeftLife,
                       y(end->second));
  }

  /// Each that came, from the last one before that left the other side with its number and opcode.
  std::string packets() const {
    std::string text;
    std::map<std::tuple<size_t, uint32_t, uint8_t>, Step> sent;
    for (const Step& step : steps_) {
      const trace::Record& one = record(step);
      if (one.kind == Kind::packet_sent) {
        sent[{step.side, one.number, one.code}] = step;
      } else if (one.kind == Kind::packet_came && of_.right) {
        const size_t other = is_left(step.side) ? *of_.right : of_.left;
        if (const auto found = sent.find({other, one.number, one.code}); found != sent.end()) {
          text += line("packet", {found->second.side, found->second.event}, {step.side, step.event});
        }
      }
    }
    return text;
  }

  const Timeline& timeline_;
  const Conversation of_;
  const std::vector<Step> steps_;
  std::map<std::pair<size_t, size_t>, size_t> rows_;
};

std::string paragraph(const std::string& text) { return "<p>" + html_escaped(text) + "</p>\n"; }

/// What was told of one of the sides, and where among its events.
struct Told {
  const trace::Words* words;
  size_t recording;
  std::optional<Step> step;
};

std::vector<Told> all_told(const Timeline& timeline) {
  std::vector<Told> all;
  for (size_t i = 0; i < timeline.recordings.size(); ++i) {
    for (const trace::Words& one : timeline.recordings[i].file.words) {
      Told told{&one, i, {}};
      for (size_t side = 0; side < timeline.sides.size() && one.qpn != 0; ++side) {
        const Side& candidate = timeline.sides[side];
        const auto found = std::ranges::find_if(candidate.events, [&](const Moment& moment) {
          return moment.record.kind == Kind::words && moment.record.ticks == one.ticks;
        });
        if (candidate.recording == i && candidate.pair.qpn == one.qpn && found != candidate.events.end()) {
          told.step = Step{side, static_cast<size_t>(found - candidate.events.begin())};
        }
      }
      all.push_back(told);
    }
  }
  return all;
}

std::string told_html(const Timeline& timeline, const Told& told, size_t most) {
  std::string html =
      fmt::format("<h2>{} in {}</h2>\n<pre>{}</pre>\n", told.words->is_finding ? "Finding" : "Explanation",
                  html_escaped(timeline.recordings[told.recording].label()), html_escaped(told.words->text));
  if (!told.step) {
    return html;
  }
  const size_t side = told.step->side;
  const uint64_t until = timeline.sides[side].events[told.step->event].ns;
  for (const Conversation& one : conversations_of(timeline)) {
    if (one.left == side || one.right == side) {
      html += Chart(timeline, one, steps_of(timeline, one, most, until)).svg();
    }
  }
  return html;
}

}  // namespace

std::string timeline_page(const Timeline& timeline, size_t most) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ringbolt trace</title>"
      "<meta name=\"viewport\" content=\"width=device-width\"><style>{}</style></head><body>\n<h1>Timeline</h1>\n",
      kPageStyle);
  html +=
      "<p class=\"note\">Times are microseconds since the first event, by the clock of the host. Blue arrows are "
      "messages, from post to the receiver's poll; dashed ones packets.</p>\n";
  for (const Told& one : all_told(timeline)) {
    html += told_html(timeline, one, most);
  }
  for (const Conversation& one : conversations_of(timeline)) {
    const auto steps = steps_of(timeline, one, most);
    if (steps.empty()) {
      continue;
    }
    html +=
        "<h2>Connection</h2>\n" + paragraph(side_text(timeline, one.left) + ": " + under_way_text(timeline, one.left));
    if (one.right) {
      html += paragraph(side_text(timeline, *one.right) + ": " + under_way_text(timeline, *one.right));
    }
    html += Chart(timeline, one, steps).svg();
  }
  return html + "</body></html>\n";
}

}  // namespace ringbolt::tools::trace_command
