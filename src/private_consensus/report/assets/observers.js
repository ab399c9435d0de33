// Draws a graph and a heat map of the computed privacy losses between agents. Without this script, the page has its
// tables only.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const SIDE = 320, RADIUS = 120, NODE = 19;
  let graphs = {};
  window.losses = (rows) => { graphs = rows; };

  const pick = (name) => document.getElementById(`pick-${name}`);

  const shown = (value) => {
    if (value === null || value === undefined) return "–";
    if (value < 0) return "∞";
    return value >= 0.01 || value === 0 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
  };

  // Two significant digits, so that a column fits a narrow screen.
  const brief = (value) => {
    if (value === null || value === undefined || value < 0) return shown(value);
    if (value > 0 && value < 0.001) return value.toExponential(0);
    return String(Number(value.toPrecision(2)));
  };

  // Return a privacy loss relative to the budget, on a logarithmic scale: 1 from the budget on, 0 up to a hundredth of it.
  function relativeLoss(value, budget) {
    if (value === null) return 0;
    if (value < 0) return 1;
    return Math.min(1, Math.max(0, 1 + Math.log10(Math.max(value, 1e-9) / budget) / 2));
  }

  function paint(fraction) {
    const lightness = 95 - 58 * fraction;
    return { ground: `hsl(14 ${30 + 50 * fraction}% ${lightness}%)`, ink: fraction > 0.6 ? "#ffffff" : "#1b1f24" };
  }

  function element(name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  // Return the coordinates of the agents on a circle; an agent that is an end of all edges is in the centre.
  function positions(graph) {
    const n = graph.agents;
    const hub = [...Array(n).keys()].find((i) => n > 3 && graph.edges.every((edge) => edge.includes(i)));
    const around = [...Array(n).keys()].filter((i) => i !== hub);
    const coordinates = Array(n).fill([SIDE / 2, SIDE / 2]);
    around.forEach((agent, i) => {
      const angle = (2 * Math.PI * i) / around.length - Math.PI / 2;
      coordinates[agent] = [SIDE / 2 + RADIUS * Math.cos(angle), SIDE / 2 + RADIUS * Math.sin(angle)];
    });
    return coordinates;
  }

  function distances(graph, from) {
    const edgesTo = Array(graph.agents).fill(Infinity);
    edgesTo[from] = 0;
    for (const at of [...Array(graph.agents).keys()]) {
      for (const [a, b] of graph.edges) {
        if (edgesTo[a] === at) edgesTo[b] = Math.min(edgesTo[b], at + 1);
        if (edgesTo[b] === at) edgesTo[a] = Math.min(edgesTo[a], at + 1);
      }
    }
    return edgesTo;
  }

  function drawGraph(graph, cells, budget, agent) {
    const box = document.getElementById("losses-graph");
    const at = positions(graph);
    const drawing = element("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "group", "aria-labelledby": "losses-says" });
    const focused = box.contains(document.activeElement) ? document.activeElement.dataset.agent : undefined;
    for (const [a, b] of graph.edges) {
      drawing.append(element("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1], class: "link" }));
    }
    at.forEach(([x, y], u) => {
      const { ground, ink } = u === agent ? { ground: "var(--link)", ink: "#ffffff" } : paint(relativeLoss(cells.guarantee[agent][u], budget));
      const description = u === agent ? `agent ${u}, the observer` : `privacy loss of agent ${u}: ε ${shown(cells.guarantee[agent][u])}`;
      const node = element("g", { class: "agent", tabindex: 0, role: "button", "aria-label": description, "data-agent": u });
      const circle = element("circle", { cx: x, cy: y, r: NODE });
      circle.style.fill = ground;
      const label = element("text", { x, y: y + 4, "text-anchor": "middle" }, u === agent ? `v${u}` : shown(cells.guarantee[agent][u]));
      label.style.fill = ink;
      node.append(circle, label, element("title", {}, description));
      const observe = () => { pick("agent").value = u; draw(); };
      node.addEventListener("click", observe);
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        observe();
      });
      drawing.append(node);
    });
    box.replaceChildren(drawing);
    if (focused !== undefined) box.querySelector(`[data-agent="${focused}"]`)?.focus();
  }

  function drawMap(graph, cells, budget, agent) {
    const table = document.getElementById("losses-map");
    const row = (...children) => { const line = document.createElement("tr"); line.append(...children); return line; };
    const cell = (kind, text, scope) => {
      const node = document.createElement(kind);
      node.textContent = text;
      if (scope) node.scope = scope;
      return node;
    };
    const agents = [...Array(graph.agents).keys()];
    const head = row(cell("th", "of", "col"), ...agents.map((v) => cell("th", String(v), "col")));
    head.children[agent + 1].classList.add("chosen");
    const body = agents.map((u) => row(cell("th", String(u), "row"), ...agents.map((v) => {
      if (u === v) return cell("td", "");
      const value = cells.guarantee[v][u];
      const field = cell("td", brief(value));
      const { ground, ink } = paint(relativeLoss(value, budget));
      field.style.background = ground;
      field.style.color = ink;
      field.title = `privacy loss of agent ${u} to agent ${v}: ε ${shown(value)}; by the formula ${shown(cells.formula[v][u])}; ${cells.labels[v][u]}`;
      return field;
    })));
    const top = document.createElement("thead"), rest = document.createElement("tbody");
    top.append(head);
    rest.append(...body);
    table.tHead?.remove();
    for (const old of [...table.tBodies]) old.remove();
    table.append(top, rest);
  }

  function describe(graph, cells, budget, agent) {
    const edgesTo = distances(graph, agent);
    const farthest = Math.max(...edgesTo.filter(Number.isFinite));
    const parts = [];
    for (let d = 1; d <= farthest; d++) {
      const losses = edgesTo.flatMap((distance, u) => (distance === d ? [cells.guarantee[agent][u]] : []));
      const worst = losses.some((value) => value < 0) ? -1 : Math.max(...losses);
      parts.push(`${d === 1 ? "neighbours" : `${d} edges away`} ε ${shown(worst)}`);
    }
    const labels = [...new Set(cells.labels[agent].filter(Boolean))].join(", ");
    document.getElementById("losses-says").textContent =
      `Largest privacy loss to agent ${agent}: ${parts.join("; ")}; to the eavesdropper ε ${shown(budget)} (${labels}).`;
  }

  function fill(select, values, words = String) {
    const before = select.value;
    select.replaceChildren(...values.map((value) => new Option(words(value), value)));
    if (values.map(String).includes(before)) select.value = before;
  }

  function draw() {
    const graph = graphs[pick("graph").value];
    fill(pick("algorithm"), Object.keys(graph.losses), (name) => graph.names[name]);
    const budgets = graph.losses[pick("algorithm").value];
    fill(pick("epsilon"), Object.keys(budgets));
    fill(pick("agent"), [...Array(graph.agents).keys()]);
    const budget = Number(pick("epsilon").value), agent = Number(pick("agent").value);
    const cells = budgets[pick("epsilon").value][pick("view").value];
    drawGraph(graph, cells, budget, agent);
    drawMap(graph, cells, budget, agent);
    describe(graph, cells, budget, agent);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const names = Object.keys(graphs);
    if (!names.length) return;
    fill(pick("graph"), names, (name) => graphs[name].title);
    for (const name of ["graph", "algorithm", "epsilon", "view", "agent"]) pick(name).addEventListener("change", draw);
    fill(pick("algorithm"), Object.keys(graphs[names[0]].losses));
    fill(pick("epsilon"), Object.keys(graphs[names[0]].losses[pick("algorithm").value]));
    if ([...pick("epsilon").options].some(({ value }) => value === "4")) pick("epsilon").value = "4";
    document.getElementById("losses").hidden = false;
    draw();
  });
})();
