#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "heat_map.h"
#include "perf/result.h"

namespace ringbolt::tools::perf {
namespace {

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}"
    "svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif}"
    "pre{overflow-x:auto}.bad{color:#b00;font-weight:bold}.note{color:#666}";

constexpr double kWidth = 720;
constexpr double kHeight = 260;
constexpr double kLeft = 70;
constexpr double kBottom = 40;

/// A line of a plot: points (x, y), both positive.
struct Curve {
  std::string name;
  const char* colour;
  std::vector<std::pair<double, double>> points;
};

/// Where a value lies between the least and the most, 0 to 1, on a logarithmic scale.
double place(double value, double least, double most) {
  return most > least ? std::log(value / least) / std::log(most / least) : 0.5;
}

std::string frame_svg() {
  return fmt::format("<path d=\"M{0} 10V{1}H{2}\" fill=\"none\" stroke=\"#888\"/>\n", kLeft, 10 + kHeight,
                     kLeft + kWidth);
}

std::string tick_svg(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string curve_svg(const Curve& curve, double left, double right, double low, double high, size_t index) {
  std::string points;
  std::string dots;
  for (const auto& [x, y] : curve.points) {
    const double at_x = kLeft + place(x, left, right) * kWidth;
    const double at_y = 10 + (1 - place(y, low, high)) * kHeight;
    points += fmt::format("{:.1f},{:.1f} ", at_x, at_y);
    dots += fmt::format(
        "<g><title>{}: {:.0f} bytes, {:.4g}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/></g>\n",
        curve.name, x, y, at_x, at_y, curve.colour);
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
                     curve.colour) +
         dots +
         fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kLeft + 12,
                     26 + 16 * static_cast<double>(index), curve.colour, curve.name);
}

/// Sizes from left to right, figures from bottom to top, both logarithmic.
std::string plot_svg(const std::vector<Curve>& curves) {
  double left = 1e300;
  double right = 0;
  double low = 1e300;
  double high = 0;
  for (const Curve& curve : curves) {
    for (const auto& [x, y] : curve.points) {
      left = std::min(left, x);
      right = std::max(right, x);
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  if (high <= 0) {
    return "";
  }
  const double all_height = 10 + kHeight + kBottom;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
                                kLeft + kWidth + 30, all_height);
  svg += frame_svg();
  svg += tick_svg(kLeft - 6, 10 + kHeight, "end", fmt::format("{:.3g}", low));
  svg += tick_svg(kLeft - 6, 22, "end", fmt::format("{:.3g}", high));
  svg += tick_svg(kLeft, all_height - 18, "start", fmt::format("{:.0f} bytes", left));
  svg += tick_svg(kLeft + kWidth, all_height - 18, "end", fmt::format("{:.0f} bytes", right));
  for (size_t i = 0; i < curves.size(); ++i) {
    svg += curve_svg(curves[i], left, right, low, high, i);
  }
  return svg + "</svg>\n";
}

std::string latency_plot(const Result& result) {
  std::vector<Curve> curves{{"p50", "#27a", {}}, {"p99", "#a70", {}}, {"p99.9", "#b00", {}}};
  for (const Row& row : result.rows) {
    if (row.latency && row.latency->p50_us > 0) {
      const auto size = static_cast<double>(row.size_bytes);
      curves[0].points.emplace_back(size, row.latency->p50_us);
      curves[1].points.emplace_back(size, row.latency->p99_us);
      curves[2].points.emplace_back(size, row.latency->p999_us);
    }
  }
  return "<h2>Latency (\u00b5s)</h2>\n" + plot_svg(curves);
}

std::string bandwidth_plot(const Result& result) {
  std::vector<Curve> curves{{"goodput, posted by the client", "#27a", {}},
                            {"goodput, posted by the server", "#084", {}}};
  for (const Row& row : result.rows) {
    for (const BandwidthFigures& one : row.bandwidth) {
      if (one.goodput_gbps() > 0) {
        curves[one.by == "client" ? 0 : 1].points.emplace_back(static_cast<double>(row.size_bytes), one.goodput_gbps());
      }
    }
  }
  if (!result.parameters.is_bidirectional) {
    curves.pop_back();
  }
  return "<h2>Bandwidth (Gb/s)</h2>\n" + plot_svg(curves);
}

/// Times from left to right, how many from bottom to top, the latter logarithmic, so that the rare slow ones show.
std::string histogram_svg(const Row& row) {
  const std::vector<Histogram::Bar>& bars = row.latency->bars;
  uint64_t most = 1;
  for (const Histogram::Bar& bar : bars) {
    most = std::max(most, bar.count);
  }
  const double all_height = 10 + kHeight + kBottom;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
                                kLeft + kWidth + 30, all_height);
  svg += frame_svg();
  const double step = kWidth / static_cast<double>(std::max<size_t>(bars.size(), 1));
  for (size_t i = 0; i < bars.size(); ++i) {
    const Histogram::Bar& bar = bars[i];
    if (bar.count == 0) {
      continue;
    }
    const double height = kHeight * std::log1p(static_cast<double>(bar.count)) / std::log1p(static_cast<double>(most));
    svg += fmt::format(
        "<g><title>{} to {} ns: {}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"#27a\"/></g>\n",
        bar.from_ns, bar.to_ns, bar.count, kLeft + step * static_cast<double>(i), 10 + kHeight - height,
        std::max(step - 1, 1.0), height);
  }
  svg += tick_svg(kLeft - 6, 22, "end", std::to_string(most));
  if (!bars.empty()) {
    svg += tick_svg(kLeft, all_height - 18, "start", fmt::format("{} ns", bars.front().from_ns));
    svg += tick_svg(kLeft + kWidth, all_height - 18, "end", fmt::format("{} ns", bars.back().to_ns));
  }
  return svg + "</svg>\n";
}

}  // namespace

std::string result_page(const Result& result) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Ringbolt perf, {0}</title>"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n",
      html_escaped(title_of(result.parameters)), kStyle);
  for (const std::string& problem : problems_of(result)) {
    page += fmt::format("<p class=\"bad\">{}</p>\n", html_escaped(problem));
  }
  if (result.parameters.has_latency) {
    page += latency_plot(result);
    for (const Row& row : result.rows) {
      if (row.latency) {
        page += fmt::format(
            "<h3>Round by round, {} bytes</h3>\n<p class=\"note\">How many took how long; the count is "
            "logarithmic.</p>\n{}",
            row.size_bytes, histogram_svg(row));
      }
    }
  }
  if (result.parameters.has_bandwidth) {
    page += bandwidth_plot(result);
  }
  return page + "<h2>All figures</h2>\n<pre>" + html_escaped(result_text(result, {true, false})) +
         "</pre>\n</body></html>\n";
}

}  // namespace ringbolt::tools::perf
