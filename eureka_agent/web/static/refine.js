"use strict";
// What the page of a refinement does beside htmx: keys, sliders of constants, order by buttons.
(() => {
  // ── keys ───────────────────────────────────────────────────────────────────────────────────────

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), select, textarea")) return;
    document.querySelector(`[data-key="${CSS.escape(event.key)}"]:not(:disabled)`)?.click();
  });

  // ── constants ──────────────────────────────────────────────────────────────────────────────────

  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (!slider.matches("[data-constant]")) return;
    const value = Number(slider.dataset.constant) * 10 ** Number(slider.value);
    const text = String(Number(value.toPrecision(4)));
    slider.parentElement.querySelector("output").textContent = text;
    slider.setAttribute("aria-valuetext", text);
  });

  // a slider that was let go: the critic answers at once
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-constant]")) return;
    const form = event.target.form;
    form.requestSubmit(form.querySelector("[value=check]"));
  });

  // ── marks ──────────────────────────────────────────────────────────────────────────────────────

  document.addEventListener("eureka:time", (event) => {
    const field = event.target.closest("section")?.querySelector("[data-second]");
    if (field) field.value = event.detail.toFixed(2);
  });

  // ── order ──────────────────────────────────────────────────────────────────────────────────────

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move]");
    if (!button) return;
    const item = button.closest("li");
    const other = button.dataset.move === "up" ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    if (button.dataset.move === "up") other.before(item);
    else other.after(item);
    button.focus();
  });
})();
