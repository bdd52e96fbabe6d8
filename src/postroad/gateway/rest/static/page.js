"use strict";

// Reads /openapi.json and builds a form for each operation. All text from outside is set as text, never as HTML.

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const resolve = (api, schema) =>
  schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;

// A value to begin with: what is required, and what has a default worth showing.
const example = (api, found, depth = 0) => {
  const schema = resolve(api, found);
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return example(api, schema.anyOf[0], depth);
  if (schema.type === "object" && depth < 4) {
    const names = schema.required || [];
    return Object.fromEntries(names.map((name) => [name, example(api, schema.properties[name], depth + 1)]));
  }
  if (schema.type === "array") return schema.minItems ? [example(api, schema.items, depth + 1)] : [];
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 0;
  return schema.type === "boolean" ? false : "text";
};

const parameterField = (parameter) => {
  const { schema } = parameter;
  const input = schema.enum
    ? make("select", { name: parameter.name }, ...["", ...schema.enum].map((value) => make("option", {}, value)))
    : make("input", { name: parameter.name, placeholder: String(schema.default ?? "") });
  if (parameter.required) input.required = true;
  input.dataset.place = parameter.in;
  return make("label", {}, make("code", {}, parameter.name), input, make("small", {}, parameter.description || ""));
};

const fieldList = (api, schema) => {
  const found = resolve(api, schema);
  const rows = Object.entries(found.properties || {}).map(([name, property]) =>
    make("tr", {}, make("td", {}, make("code", {}, name)), make("td", {}, property.description || "")));
  return make("table", {}, ...rows);
};

const send = async (form, method, path, output) => {
  const headers = { Accept: "application/json" };
  const key = document.getElementById("key").value;
  if (key) headers.Authorization = `Bearer ${key}`;
  const query = new URLSearchParams();
  let target = path;
  for (const input of form.querySelectorAll("[data-place]")) {
    if (!input.value) continue;
    if (input.dataset.place === "path") target = target.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === "query") query.set(input.name, input.value);
    else headers[input.name] = input.value;
  }
  const request = { method, headers };
  const body = form.querySelector("textarea");
  if (body && body.value.trim()) {
    headers["Content-Type"] = "application/json";
    request.body = body.value;
  }
  output.textContent = "…";
  try {
    const response = await fetch(query.size ? `${target}?${query}` : target, request);
    const text = await response.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* no JSON: as it is */ }
    output.textContent = `${response.status} ${response.statusText}\n\n${shown}`;
  } catch (error) {
    output.textContent = String(error);
  }
};

const operation = (api, path, method, found) => {
  const form = make("form", {});
  for (const parameter of found.parameters) form.append(parameterField(parameter));
  const content = found.requestBody?.content["application/json"];
  if (content) {
    const body = make("textarea", { spellcheck: "false", "aria-label": "body" });
    body.value = JSON.stringify(example(api, content.schema), null, 2);
    form.append(body, make("details", {}, make("summary", {}, "fields"), fieldList(api, content.schema)));
  }
  const output = make("pre", { "aria-live": "polite" });
  form.append(make("div", {}, make("button", {}, "Send")), output);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, method, path, output);
  });
  const title = make("summary", {}, make("span", { class: `method ${method}` }, method), make("code", {}, path),
    ` ${found.summary}`);
  return make("details", { id: found.operationId }, title, make("p", {}, found.description), form);
};

const show = (api) => {
  document.getElementById("version").textContent = api.info.version;
  document.getElementById("description").textContent = api.info.description;
  const main = document.getElementById("operations");
  main.replaceChildren();
  let tag = "";
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, found] of Object.entries(methods)) {
      if (found.tags[0] !== tag) main.append(make("h2", {}, tag = found.tags[0]));
      main.append(operation(api, path, method.toUpperCase(), found));
    }
  }
  const list = document.getElementById("problems");
  for (const problem of api["x-problems"])
    list.append(make("dt", { id: problem.slug }, `${problem.status} ${problem.slug}`), make("dd", {}, problem.title));
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
};

fetch("/openapi.json")
  .then((response) => response.json())
  .then(show)
  .catch((error) => { document.getElementById("operations").textContent = String(error); });
