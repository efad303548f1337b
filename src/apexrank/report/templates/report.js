// All frames are already drawn: the slider only selects the one that is shown.
(() => {
  "use strict";
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => (d.open = true)));
  const slider = document.getElementById("frames");
  if (!slider) return;
  const labels = JSON.parse(slider.dataset.labels);
  const shown = document.getElementById("frames-shown");
  const frames = document.querySelectorAll(".frame");
  const show = () => {
    frames.forEach((frame) => frame.classList.toggle("on", frame.dataset.frame === slider.value));
    shown.textContent = labels[slider.value];
    slider.setAttribute("aria-valuetext", labels[slider.value]);
  };
  slider.addEventListener("input", show);
  addEventListener("pageshow", show); // a browser may restore an earlier position
})();
