// Graph and heat map of the computed privacy losses between agents. Without this script the page still
// has its tables.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SIDE = 320, RADIUS = 120, NODE = 19;
  let graphs = {};
  window.learned = (rows) => { graphs = rows; };

  const pick = (name) => document.getElementById(`pick-${name}`);

  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (value < 0) return "∞";
    return value >= 0.01 || value === 0 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
  };

  // Two digits fit a column of a phone.
  const brief = (value) => {
    if (value === null || value === undefined || value < 0) return shown(value);
    if (value > 0 && value < 0.001) return value.toExponential(0);
    return String(Number(value.toPrecision(2)));
  };

  // Share of the budget on a logarithmic scale: 1 at the budget and above, 0 at a hundredth of it.
  function share(value, budget) {
    if (value === null) return 0;
    if (value < 0) return 1;
    return Math.min(1, Math.max(0, 1 + Math.log10(Math.max(value, 1e-9) / budget) / 2));
  }

  function paint(part) {
    const lightness = 95 - 58 * part;
    return { ground: `hsl(14 ${30 + 50 * part}% ${lightness}%)`, ink: part > 0.6 ? "#ffffff" : "#1b1f24" };
  }

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // On a circle; an agent that all links have in common stands in the middle.
  function places(graph) {
    const n = graph.agents;
    const hub = [...Array(n).keys()].find((i) => n > 3 && graph.links.every((link) => link.includes(i)));
    const around = [...Array(n).keys()].filter((i) => i !== hub);
    const found = Array(n).fill([SIDE / 2, SIDE / 2]);
    around.forEach((agent, i) => {
      const angle = (2 * Math.PI * i) / around.length - Math.PI / 2;
      found[agent] = [SIDE / 2 + RADIUS * Math.cos(angle), SIDE / 2 + RADIUS * Math.sin(angle)];
    });
    return found;
  }

  function distances(graph, from) {
    const found = Array(graph.agents).fill(Infinity);
    found[from] = 0;
    for (const at of [...Array(graph.agents).keys()]) {
      for (const [a, b] of graph.links) {
        if (found[a] === at) found[b] = Math.min(found[b], at + 1);
        if (found[b] === at) found[a] = Math.min(found[a], at + 1);
      }
    }
    return found;
  }

  function drawGraph(graph, cells, budget, agent) {
    const box = document.getElementById("learned-graph");
    const at = places(graph);
    const drawing = element("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "group", "aria-labelledby": "learned-says" });
    const again = box.contains(document.activeElement) ? document.activeElement.dataset.agent : undefined;
    for (const [a, b] of graph.links) {
      drawing.append(element("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1], class: "link" }));
    }
    at.forEach(([x, y], u) => {
      const { ground, ink } = u === agent ? { ground: "var(--link)", ink: "#ffffff" } : paint(share(cells.guarantee[agent][u], budget));
      const told = u === agent ? `agent ${u}, the observer` : `privacy loss of agent ${u}: ε ${shown(cells.guarantee[agent][u])}`;
      const node = element("g", { class: "agent", tabindex: 0, role: "button", "aria-label": told, "data-agent": u });
      const circle = element("circle", { cx: x, cy: y, r: NODE });
      circle.style.fill = ground;
      const label = element("text", { x, y: y + 4, "text-anchor": "middle" }, u === agent ? `v${u}` : shown(cells.guarantee[agent][u]));
      label.style.fill = ink;
      node.append(circle, label, element("title", {}, told));
      const watch = () => { pick("agent").value = u; draw(); };
      node.addEventListener("click", watch);
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        watch();
      });
      drawing.append(node);
    });
    box.replaceChildren(drawing);
    if (again !== undefined) box.querySelector(`[data-agent="${again}"]`)?.focus();
  }

  function drawMap(graph, cells, budget, agent) {
    const table = document.getElementById("learned-map");
    const row = (...children) => { const made = document.createElement("tr"); made.append(...children); return made; };
    const cell = (kind, text, scope) => {
      const made = document.createElement(kind);
      made.textContent = text;
      if (scope) made.scope = scope;
      return made;
    };
    const agents = [...Array(graph.agents).keys()];
    const head = row(cell("th", "of", "col"), ...agents.map((v) => cell("th", String(v), "col")));
    head.children[agent + 1].classList.add("chosen");
    const body = agents.map((u) => row(cell("th", String(u), "row"), ...agents.map((v) => {
      if (u === v) return cell("td", "");
      const value = cells.guarantee[v][u];
      const made = cell("td", brief(value));
      const { ground, ink } = paint(share(value, budget));
      made.style.background = ground;
      made.style.color = ink;
      made.title = `of ${u} to ${v}: ${shown(value)}; formula ${shown(cells.formula[v][u])}, ${cells.labels[v][u]}`;
      return made;
    })));
    const top = document.createElement("thead"), rest = document.createElement("tbody");
    top.append(head);
    rest.append(...body);
    table.tHead?.remove();
    for (const old of [...table.tBodies]) old.remove();
    table.append(top, rest);
  }

  function say(graph, cells, budget, agent) {
    const apart = distances(graph, agent);
    const farthest = Math.max(...apart.filter(Number.isFinite));
    const parts = [];
    for (let d = 1; d <= farthest; d++) {
      const own = apart.flatMap((distance, u) => (distance === d ? [cells.guarantee[agent][u]] : []));
      const worst = own.some((value) => value < 0) ? -1 : Math.max(...own);
      parts.push(`${d === 1 ? "neighbours" : `${d} edges away`} ε ${shown(worst)}`);
    }
    const labels = [...new Set(cells.labels[agent].filter(Boolean))].join(", ");
    document.getElementById("learned-says").textContent =
      `Privacy loss to agent ${agent}, at most: ${parts.join("; ")}; to the eavesdropper ε ${shown(budget)}. (${labels})`;
  }

  function fill(select, values, words = String) {
    const before = select.value;
    select.replaceChildren(...values.map((value) => new Option(words(value), value)));
    if (values.map(String).includes(before)) select.value = before;
  }

  function draw() {
    const graph = graphs[pick("graph").value];
    fill(pick("algorithm"), Object.keys(graph.of), (name) => graph.names[name]);
    const budgets = graph.of[pick("algorithm").value];
    fill(pick("epsilon"), Object.keys(budgets));
    fill(pick("agent"), [...Array(graph.agents).keys()]);
    const budget = Number(pick("epsilon").value), agent = Number(pick("agent").value);
    const cells = budgets[pick("epsilon").value][pick("view").value];
    drawGraph(graph, cells, budget, agent);
    drawMap(graph, cells, budget, agent);
    say(graph, cells, budget, agent);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const names = Object.keys(graphs);
    if (!names.length) return;
    fill(pick("graph"), names, (name) => graphs[name].title);
    for (const name of ["graph", "algorithm", "epsilon", "view", "agent"]) pick(name).addEventListener("change", draw);
    fill(pick("algorithm"), Object.keys(graphs[names[0]].of));
    fill(pick("epsilon"), Object.keys(graphs[names[0]].of[pick("algorithm").value]));
    if ([...pick("epsilon").options].some(({ value }) => value === "4")) pick("epsilon").value = "4";
    document.getElementById("learned").hidden = false;
    draw();
  });
})();
