// Draw interactive charts when they become visible; filter tables; unfold the targets of links. Without this script,
// the page shows each figure as a picture.
"use strict";

(() => {
  const AHEAD = "400px";       // distance to the visible area at which a chart is drawn
  const NARROW = 600;          // width of a chart in pixels below which its panels are stacked
  const TEXT = 12;             // font size in pixels
  const LETTER = 6.8;          // mean width of a letter of this size, in pixels
  const AXIS = 74;             // width of the axis left of a panel, in pixels
  const GAP = 30;              // distance between panels, in pixels
  const NARROWEST = 260;       // smallest width of a panel in pixels; narrower panels are arranged in fewer columns
  const FLAT = 0.85;           // height over width above which a panel keeps its shape
  const RESIZED = 24;          // change of the width in pixels from which on a chart is drawn again
  const ROOT = document.documentElement.dataset.root ?? "";  // from this page to the front page
  const scripts = new Map();
  const specifications = new Map();
  const drawn = new Map();

  // Called by data scripts; a page that is opened from a disk can load scripts but no JSON.
  window.figure = (name, specification) => specifications.set(name, specification);

  function load(source) {
    if (!scripts.has(source)) {
      scripts.set(source, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = source;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${source} cannot be loaded`));
        document.head.append(script);
      }));
    }
    return scripts.get(source);
  }

  const wanted = (box) => box.clientWidth < NARROW ? "stacked" : "live";

  // Return the selections that a click in a legend sets, from all levels of the specification.
  function legendParameters(view) {
    const inner = ["hconcat", "vconcat", "concat", "layer"].flatMap((key) => view[key] ?? []);
    const own = (view.params ?? []).filter(({ bind, select }) => bind === "legend" && select?.type);
    return [...own, ...inner.flatMap(legendParameters)];
  }

  // Wrap a text to lines that fit a width in pixels.
  function lines(text, pixels) {
    const letters = Math.max(Math.floor(pixels / LETTER), 12);
    const wrapped = [""];
    for (const word of String(text).split(" ")) {
      const longer = `${wrapped.at(-1)} ${word}`.trim();
      if (longer.length <= letters || !wrapped.at(-1)) wrapped[wrapped.length - 1] = longer;
      else wrapped.push(word);
    }
    return wrapped;
  }

  const isUnit = (view) => Number.isFinite(view.width) && Number.isFinite(view.height);

  function units(view) {
    const inner = ["concat", "hconcat", "vconcat"].flatMap((key) => view[key] ?? []);
    return [...(isUnit(view) ? [view] : []), ...inner.flatMap(units)];
  }

  // Set the size of all text, and wrap legends into columns and lines that fit the width.
  function setText(part, width, legendWidth) {
    if (Array.isArray(part)) {
      for (const each of part) setText(each, width, legendWidth);
    } else if (part && typeof part === "object") {
      if (part.type === "text") part.fontSize = Math.max(part.fontSize ?? TEXT, TEXT);
      const names = part.type === "nominal" ? part.scale?.domain : undefined;
      if (names && part.legend) {
        const shown = Object.fromEntries(names.map((name) => [name, lines(name, legendWidth - 50)]));
        const longest = Math.max(...Object.values(shown).flat().map((line) => line.length));
        part.legend.columns = Math.max(1, Math.floor(legendWidth / (longest * LETTER + 50)));
        part.legend.labelExpr = `${JSON.stringify(shown)}[datum.label]`;
        part.legend.labelLimit = legendWidth;
      }
      if (part.gradientLength) part.gradientLength = Math.min(part.gradientLength, width);
      for (const [key, value] of Object.entries(part)) {
        if (!["data", "datasets", "config"].includes(key)) setText(value, width, legendWidth);
      }
    }
  }

  // Wrap the titles of panels, which are marks with a text field, or titles of views.
  function wrapTitles(specification, view, width) {
    for (const layer of view.layer ?? []) {
      if (layer.encoding?.text?.field !== "title") continue;
      const rows = specification.datasets[layer.data.name].map(
        (row) => ({ ...row, title: lines(row.title, width) }));
      specification.datasets[layer.data.name] = rows.map(
        (row) => ({ ...row, title: row.title.join("\n") }));
      layer.mark.lineBreak = "\n";
      layer.mark.dy -= TEXT * 1.2 * (Math.max(...rows.map((row) => row.title.length)) - 1);
    }
    if (typeof view.title === "string") view.title = lines(view.title, width);
    for (const key of ["concat", "hconcat", "vconcat"]) {
      for (const inner of view[key] ?? []) wrapTitles(specification, inner, width);
    }
  }

  // Arrange the panels in as many columns as fit the width, in pixels.
  function fit(specification, pixels) {
    const most = specification.columns ?? specification.concat?.length ?? 1;
    const fitting = Math.max(1, Math.floor((pixels + GAP) / (NARROWEST + AXIS + GAP)));
    const columns = Math.min(most, fitting);
    if (specification.concat) specification.columns = columns;
    const width = Math.max(Math.floor((pixels - (columns - 1) * GAP) / columns - AXIS), 120);
    for (const unit of units(specification)) {
      const ratio = unit.height / unit.width;
      unit.width = ratio > FLAT ? Math.min(width, 1.5 * unit.width) : width;
      unit.height = ratio > FLAT ? unit.width * ratio : Math.max(unit.height, 0.4 * width);
    }
    const sizes = { labelFontSize: TEXT, titleFontSize: TEXT };
    const { axis, legend, title } = specification.config ?? {};
    specification.config = {
      ...specification.config, axis: { ...axis, ...sizes }, legend: { ...legend, ...sizes },
      title: { ...title, fontSize: TEXT, subtitleFontSize: TEXT },
    };
    const own = specification.resolve?.scale?.color === "independent";
    setText(specification, width, own ? width : pixels - AXIS);
    const { title: heading, ...rest } = specification;
    wrapTitles(specification, rest, width);
    if (heading?.text) {
      heading.text = [heading.text].flat().flatMap((line) => lines(line, pixels));
      heading.fontSize = TEXT;
    }
  }

  function arranged(original, label, state, pixels) {
    const specification = structuredClone(original);
    specification.description = label;
    if (specification.title && specification.title.subtitle) {
      // The heading of the page is the title; the chart keeps the subtitle, which states the data source.
      const { subtitle, subtitleColor } = specification.title;
      specification.title = {
        text: subtitle, color: subtitleColor, anchor: "start", fontSize: 11, offset: 8,
        fontWeight: /surrogate/i.test(subtitle) ? "bold" : "normal",
      };
    }
    for (const { select } of legendParameters(specification)) {
      // A click on a name adds or removes its curve, also without the shift key.
      select.toggle = "true";
    }
    if (specification.hconcat) {
      specification.concat = specification.hconcat;
      specification.columns = specification.concat.length;
      delete specification.hconcat;
    }
    if (state === "stacked" && specification.concat) specification.columns = 1;
    fit(specification, pixels);
    return specification;
  }

  function hint(again) {
    const line = document.createElement("p");
    line.className = "hint";
    line.textContent = "Click names in the legend to select their curves. Point at a mark to read its numbers. ";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Show all";
    button.addEventListener("click", again);
    line.append(button);
    return line;
  }

  async function draw(box) {
    const image = box.querySelector("img");
    const picture = image.closest("a") ?? image;   // the picture links to its full size
    const name = box.dataset.figure;
    const state = wanted(box);
    try {
      await Promise.all([load(`${ROOT}assets/vega.js`), load(`${ROOT}figures/${name}.js`)]);
      let live = box.querySelector(".live");
      if (!live) {
        live = document.createElement("div");
        live.className = "live";
        live.setAttribute("role", "img");
        live.setAttribute("aria-label", image.alt);
        box.append(live);
      }
      const room = box.clientWidth;
      const embed = async (pixels) => {
        const specification = arranged(specifications.get(name), image.alt, state, pixels);
        drawn.get(name)?.finalize();
        drawn.set(name, await vegaEmbed(live, specification, { renderer: "svg", actions: false }));
        return Number(live.querySelector("svg").getAttribute("width"));
      };
      // Labels do not shrink: draw a chart that is too wide a second time, narrower.
      const excess = await embed(room) - room;
      if (excess > 1) await embed(room - excess);
      box.dataset.width = room;
      picture.hidden = true;
      box.dataset.state = state;
      if (legendParameters(specifications.get(name)).length && !box.querySelector(".hint")) {
        box.append(hint(() => draw(box)));
      }
    } catch (error) {
      box.dataset.state = "failed";
      picture.hidden = false;
      console.error(`${name}:`, error);
    }
  }

  function watchCharts() {
    const charts = document.querySelectorAll(".chart");
    const arrival = new IntersectionObserver((entries) => {
      for (const entry of entries.filter((each) => each.isIntersecting)) {
        arrival.unobserve(entry.target);
        draw(entry.target);
      }
    }, { rootMargin: AHEAD });
    const resized = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const { state } = target.dataset;
        const moved = Math.abs(target.clientWidth - Number(target.dataset.width)) > RESIZED;
        if (["stacked", "live"].includes(state) && moved) draw(target);
      }
    });
    for (const chart of charts) {
      arrival.observe(chart);
      resized.observe(chart);
    }
  }

  // Filter the rows of a table by paper, verdict and words.
  function watchFilter(form) {
    const rows = [...document.querySelectorAll(`#${form.dataset.of} tbody tr`)];
    const status = form.querySelector("output");
    const nothing = document.getElementById(`${form.dataset.of}-nothing`);
    const fits = (row) => {
      const { paper, verdict, words } = Object.fromEntries(new FormData(form));
      const text = row.textContent.toLowerCase();
      return (!paper || row.dataset.paper === paper)
        && (!verdict || row.dataset.verdict === verdict)
        && words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
    };
    const apply = () => {
      for (const row of rows) row.hidden = !fits(row);
      const shown = rows.filter((row) => !row.hidden).length;
      status.textContent = `${shown} of ${rows.length} ${status.dataset.unit}`;
      nothing.hidden = shown > 0;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    nothing.querySelector("button").addEventListener("click", () => { form.reset(); apply(); });
    form.hidden = false;
    apply();
    return apply;
  }

  // A link such as scorecard.html#verdict-held selects the verdict in the first form that has it.
  function filterByHash() {
    const look = location.hash.startsWith("#verdict-") && location.hash.slice("#verdict-".length);
    const field = document.querySelector("form.filters select[name=verdict]");
    if (!look || !field) return;
    field.value = look;
    field.form.dispatchEvent(new Event("input"));
    field.form.scrollIntoView();
  }

  function watchFilters() {
    for (const form of document.querySelectorAll("form.filters")) watchFilter(form);
    filterByHash();
    window.addEventListener("hashchange", filterByHash);
  }

  // Open the folded parts of the page that contain the target of a link.
  function unfoldTarget() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (!target) return;
    if (target.matches("details")) target.open = true;
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    target.scrollIntoView({ behavior: "instant" });
  }

  function watchTarget() {
    unfoldTarget();
    window.addEventListener("hashchange", unfoldTarget);
  }

  function watchPrint() {
    let opened = [];
    // Load the pictures that are out of view after the page, so that they can be printed.
    window.addEventListener("load", () => setTimeout(() => {
      for (const image of document.querySelectorAll(".chart img")) image.loading = "eager";
    }, 300));
    window.addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll("main details:not([open])")];
      for (const part of opened) part.open = true;
    });
    window.addEventListener("afterprint", () => {
      for (const part of opened) part.open = false;
    });
  }

  function foldContents() {
    const contents = document.querySelector(".contents details");
    if (matchMedia("(max-width: 74rem)").matches) contents.open = false;
  }

  foldContents();
  watchFilters();
  watchTarget();
  watchCharts();
  watchPrint();
})();
