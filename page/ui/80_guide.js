// SPDX-License-Identifier: Apache-2.0
// The introduction, called "the first minute": six steps, each of which shows a state of the page and explains it with
// numbers from the answer on the screen.

const GUIDE_POINT = { model: "llama-3.1-70b", hardware: "h100-sxm", scope: "down", ranks: "8", batch: "1", seq: "8192" };
const rowOf = (rows, name) => rows.find((row) => row.strategy === name && !isImplementation(row) && ran(row));
const againstSerial = (row, serial) => {
  const share = timeOf(row) / timeOf(serial) - 1;
  return `${percent(Math.abs(share))} ${share < 0 ? "less" : "more"} time than serial`;
};

const GUIDE = [
  {
    name: "Serial",
    show: "serial",
    seq: "8192",
    text: ({ serial, unit }) =>
      `One GEMM of a layer on 8 GPUs, then the reduce-scatter that sums it. While the links work, the GPUs wait: ${unit.text(serial.exposed_us)} of ${unit.text(serial.makespan_us)} are exposed, hatched below.`,
  },
  {
    name: "Slicing",
    show: "serial,sliced",
    seq: "8192",
    text: ({ serial, sliced }) =>
      `Cut the GEMM into slices, and the collective of one runs under the next. That takes ${againstSerial(sliced, serial)}.`,
  },
  {
    name: "Its tail",
    show: "sliced",
    seq: "8192",
    text: ({ sliced, unit }) =>
      `Nothing is left to hide the last slice's collective: a tail of ${unit.text(sliced.tail_us)}. More slices shorten it, but small GEMMs run less efficiently: here slicing costs ${unit.text(sliced.slicing_us)}.`,
  },
  {
    name: "CommFuse",
    show: "serial,sliced,commfuse",
    seq: "8192",
    text: ({ serial, sliced, commfuse, unit }) =>
      `CommFuse sends shards from GPU to GPU, each under one part of the GEMM, a rank's own shard last. A tail of ${unit.text(commfuse.tail_us)} is left (slicing: ${unit.text(sliced.tail_us)}), and it takes ${againstSerial(commfuse, serial)}.`,
  },
  {
    name: "When it loses",
    show: "serial,sliced,commfuse",
    seq: "256",
    text: ({ serial, commfuse }) =>
      `With 256 tokens the parts of the GEMM are too small to fill a GPU, and every transfer has its latency: CommFuse takes ${againstSerial(commfuse, serial)}. Move the Tokens slider to see from where on overlap pays.`,
  },
  {
    name: "Kernels you can get",
    seq: "8192",
    as: "all",
    text: ({ serial, have, ideal, unit }) =>
      `Those were ideal kernels. Real ones have barriers, slower GEMMs and slower transfers: ${have.strategy} takes ${unit.text(timeOf(have))}, which is ${againstSerial(have, serial)} (${unit.text(timeOf(serial))}). The fastest ideal kernels, ${ideal.strategy}, would take ${unit.text(timeOf(ideal))}. Choose implementations next to the GPU.`,
  },
];

/// Returns the settings of a step. The first steps teach schedules and have no implementations.
function guidePoint(step) {
  const { seq, as = "none" } = GUIDE[step - 1];
  return Object.fromEntries(Object.entries({ ...GUIDE_POINT, seq, as }).filter(([key]) => key in state.presets));
}

class Guide {
  constructor(place) {
    this.place = place;
    this.text = element("p", { class: "guide-text", role: "status" });
    this.begin = element("button", { type: "button", id: "guide-begin", onclick: () => this.go(1) }, "New here? Take the first minute");
    this.steps = GUIDE.map(({ name }, i) => element("button", { type: "button", onclick: () => this.go(i + 1) }, `${i + 1} ${name}`));
    this.next = element("button", { type: "button", class: "main", id: "guide-next", onclick: () => this.go(this.step + 1) }, "Next");
    this.close = element("button", { type: "button", onclick: () => this.leave() }, "Close");
    this.box = element(
      "div",
      { class: "guide-box" },
      element("div", { class: "guide-steps" }, ...this.steps, this.next, this.close),
      this.text,
    );
    place.replaceChildren(this.begin, this.box);
    this.show();
  }

  get step() {
    const step = Number(state.view.guide);
    return Number.isInteger(step) && step >= 1 && step <= GUIDE.length ? step : 0;
  }

  go(step) {
    if (step > GUIDE.length) {
      this.leave();
      return;
    }
    const { show } = GUIDE[step - 1];
    if (this.step === 0) {
      this.before = { settings: state.settings, view: state.view };
    }
    state.view = { ...state.view, guide: String(step), show };
    delete state.view.compare;
    state.settings = guidePoint(step);
    this.show();
    change({});
    this.steps[step - 1].focus({ preventScroll: true });
  }
  /// Returns to the user's place, unless the user has changed the point in the meantime.
  leave() {
    const back = this.before && !this.moved();
    Object.assign(state, back ? this.before : {});
    if (!back) {
      delete state.view.guide;
      delete state.view.show;
    }
    this.before = null;
    this.show();
    back ? change({}) : live.redraw();
    writeHash();
    this.begin.focus();
  }

  show() {
    const step = this.step;
    document.documentElement.classList.toggle("guiding", step > 0);
    this.begin.hidden = step > 0;
    this.box.hidden = step === 0;
    this.steps.forEach((button, i) =>
      i + 1 === step ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current"),
    );
    this.next.textContent = step === GUIDE.length ? "Done" : "Next";
    this.close.textContent = step > 0 && this.before && !this.moved() ? "Back to where you were" : "Close";
  }

  /// Returns true if the user has changed a setting of the step.
  moved() {
    return Object.entries(guidePoint(this.step)).some(([key, text]) => setting(key) !== text);
  }

  /// Explains the answer on the screen.
  tell(rows) {
    if (this.step === 0) {
      return;
    }
    const stepRows = { serial: rowOf(rows, "serial"), sliced: rowOf(rows, "sliced"), commfuse: rowOf(rows, "commfuse") };
    if (GUIDE[this.step - 1].as) {
      Object.assign(stepRows, { have: recommendationOf(rows)?.have, ideal: fastestIdeal(rows) });
    }
    const whole = Object.values(stepRows).every((row) => row?.makespan_us !== undefined);
    const unit = whole && timeUnit(Math.max(...Object.values(stepRows).map(timeOf)));
    this.show();
    this.text.textContent = this.moved()
      ? "You have changed this point. Choose a step to continue the first minute."
      : whole
        ? GUIDE[this.step - 1].text({ ...stepRows, unit })
        : "";
  }
}
