"use strict";
// Shows the numbers of the bin under the pointer. The page is whole without it.
(() => {
  const under = document.getElementById("under");
  const names = { dispatches: "dispatches", packets: "other packets", doorbells: "doorbells", copies: "SDMA submissions", jobs: "jobs", busy: "ran at least", lost: "events lost", depth: "packets not taken" };
  // The units are those of tracer-core/src/units.rs.
  const digits = n => n.toFixed(n < 99.95 ? 1 : 0);
  const duration = ns => {
    const s = Math.floor(ns / 1e9), two = n => String(n % 60).padStart(2, "0");
    if (s >= 3600) return Math.floor(s / 3600) + "h" + two(Math.floor(s / 60)) + "m";
    if (s >= 60) return Math.floor(s / 60) + "m" + two(s) + "s";
    if (ns < 1000) return ns + " ns";
    const [size, unit] = [[1e3, "us"], [1e6, "ms"]].find(([size]) => ns / size < 999.5) || [1e9, "s"];
    return digits(ns / size) + " " + unit;
  };
  const value = (list, bin) => list.split(" ").find(one => one.startsWith(bin + ":"))?.split(":")[1];
  const text = (name, found) => {
    if (name === "busy") return names[name] + " " + duration(Number(found));
    const [low, high] = found.split("-");
    return (high === undefined || low === high ? low : low + " to " + high) + " " + names[name];
  };
  for (const drawn of document.querySelectorAll(".drawn")) {
    const axis = drawn.closest(".lanes").dataset;
    drawn.addEventListener("pointermove", event => {
      const box = drawn.getBoundingClientRect();
      const bin = Math.min(axis.bins - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * axis.bins)));
      const from = Number(axis.from) + bin * axis.width;
      const lines = Object.entries(drawn.dataset)
        .filter(([name]) => names[name])
        .map(([name, list]) => [name, value(list, bin)])
        .filter(([, found]) => found !== undefined)
        .map(([name, found]) => text(name, found));
      under.textContent = [duration(from) + " to " + duration(from + Number(axis.width)), ...lines].join("\n");
      under.hidden = false;
      under.style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - under.offsetWidth - 4)) + "px";
      under.style.top = Math.min(event.clientY + 14, innerHeight - under.offsetHeight - 4) + "px";
    });
    drawn.addEventListener("pointerleave", () => { under.hidden = true; });
  }
})();
