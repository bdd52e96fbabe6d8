"use strict";

// Reads /openapi.json and builds a form for each operation. All text from outside is set as text, never as HTML.

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const byId = (id) => document.getElementById(id);

// What stands between backticks is code.
const prose = (text) => text.split("`").map((part, number) => (number % 2 ? make("code", {}, part) : part));

// A long path breaks behind a slash.
const breakable = (path) => path.split(/(?<=.\/)/).flatMap((part) => [part, make("wbr")]);

// --- schemas

const resolve = (api, schema) =>
  schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;

const kindsOf = (schema) => (schema.anyOf || [schema]).filter((kind) => kind.type !== "null");

// The object that a body is, or may be.
const objectOf = (api, schema) =>
  kindsOf(resolve(api, schema)).map((kind) => resolve(api, kind)).find((kind) => kind.type === "object");

// A value to begin with: what is required, and what has a default worth showing.
const example = (api, found, depth = 0) => {
  const schema = resolve(api, found);
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return example(api, objectOf(api, schema) || kindsOf(schema)[0], depth);
  if (schema.type === "object" && depth < 4) {
    const names = schema.required || [];
    return Object.fromEntries(names.map((name) => [name, example(api, schema.properties[name], depth + 1)]));
  }
  if (schema.type === "array") return schema.minItems ? [example(api, schema.items, depth + 1)] : [];
  if (schema.type === "integer" || schema.type === "number") return schema.minimum ?? 0;
  return schema.type === "boolean" ? false : "text";
};

const typeOf = (api, found) => {
  const schema = resolve(api, found);
  const kinds = kindsOf(schema).map((kind) => {
    const { type, enum: words, title } = resolve(api, kind);
    return words ? words.join(", ") : title || type || "anything";
  });
  const standard = JSON.stringify(schema.default ?? "");
  const worthSaying = !['""', "{}", "[]"].includes(standard);
  return [...new Set(kinds)].join(" or ") + (worthSaying ? `; ${standard} if left out` : "");
};

// --- forms

const parameterField = (operationId, parameter) => {
  const { name, schema, required, description } = parameter;
  const id = `${operationId}.${name}`;
  const attributes = { id, name, "aria-describedby": `${id}.note`, autocomplete: "off", spellcheck: "false" };
  const input = schema.enum
    ? make("select", attributes, ...["", ...schema.enum].map((value) => make("option", {}, value)))
    : make("input", { ...attributes, placeholder: String(schema.default ?? "") });
  input.required = required;
  input.dataset.place = parameter.in;
  const label = make("label", { for: id }, make("code", required ? { class: "needed" } : {}, name));
  return make("div", { class: "field" }, label, input, make("small", { id: `${id}.note` }, ...prose(description || "")));
};

const bodyField = (api, operationId, schema) => {
  const id = `${operationId}.body`;
  const body = make("textarea", { id, spellcheck: "false", autocomplete: "off" });
  body.value = JSON.stringify(example(api, schema), null, 2);
  body.rows = Math.min(16, body.value.split("\n").length + 2);
  body.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) body.form.requestSubmit();
  });
  const list = make("dl", { class: "fields" });
  const known = objectOf(api, schema);
  for (const [name, property] of Object.entries(known?.properties || {})) {
    const needed = known.required?.includes(name) ? { class: "needed" } : {};
    list.append(make("dt", {}, make("code", needed, name)),
      make("dd", {}, ...prose(property.description || ""), " ", make("small", {}, typeOf(api, property))));
  }
  const field = make("div", { class: "field" }, make("label", { for: id }, "Body (JSON; Ctrl+Enter sends)"), body);
  if (list.children.length) field.append(make("details", {}, make("summary", {}, "Fields"), list));
  return field;
};

// A name given in one form is likely meant in the others, too; what was typed there stays.
const shareName = (event) => {
  const { name, value, dataset } = event.target;
  if (dataset.place !== "path") return;
  delete event.target.dataset.shared;
  for (const other of document.querySelectorAll(`[data-place=path][name="${name}"]`)) {
    if (other === event.target || (other.value && !("shared" in other.dataset))) continue;
    other.value = value;
    other.dataset.shared = "";
  }
};

// Receipts that were just received are what can be acknowledged, released, extended or rejected next.
const shareReceipts = (answer) => {
  const receipts = (answer?.messages || []).map((message) => message.receipt).filter(Boolean);
  if (!receipts.length) return;
  for (const body of document.querySelectorAll("textarea")) {
    try {
      const value = JSON.parse(body.value);
      if (!Array.isArray(value.receipts)) continue;
      body.value = JSON.stringify({ ...value, receipts }, null, 2);
      body.rows = Math.min(16, 3 * receipts.length + 5);
    } catch { /* somebody is writing there */ }
  }
};

// --- requests

const readForm = (form, method, path) => {
  const headers = { Accept: "application/json" };
  const query = new URLSearchParams();
  let target = path;
  for (const input of form.querySelectorAll("[data-place]")) {
    if (!input.value) continue;
    if (input.dataset.place === "path") target = target.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === "query") query.set(input.name, input.value);
    else headers[input.name] = input.value;
  }
  const request = { method, headers, credentials: "omit" }; // else a 401 makes the browser ask for a password
  const body = form.querySelector("textarea")?.value.trim();
  if (body) {
    headers["Content-Type"] = "application/json";
    request.body = body;
  }
  const asked = query.toString();
  return [asked ? `${target}?${asked}` : target, request];
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// The same for a terminal; the key is left to the reader.
const curl = (target, { method, headers, body }, withKey) => {
  const parts = ["curl", "-X", method, quoted(location.origin + target)];
  for (const [name, value] of Object.entries(headers)) if (name !== "Accept") parts.push("-H", quoted(`${name}: ${value}`));
  if (withKey) parts.push("-H", '"Authorization: Bearer $POSTROAD_KEY"');
  if (body) parts.push("--data-raw", quoted(body));
  return parts.join(" ");
};

const send = async (form, method, path, answer) => {
  const [target, request] = readForm(form, method, path);
  const key = byId("key").value;
  const command = curl(target, request, key !== "");
  if (key) request.headers.Authorization = `Bearer ${key}`;
  const button = form.querySelector("button");
  const status = make("p", { class: "status", role: "status" }, "Waiting for the answer …");
  answer.replaceChildren(status);
  button.disabled = true;
  try {
    const began = performance.now();
    const response = await fetch(target, request);
    const text = await response.text();
    const took = Math.round(performance.now() - began);
    let shown = text;
    try {
      const found = JSON.parse(text);
      shown = JSON.stringify(found, null, 2);
      shareReceipts(found);
    } catch { /* no JSON: as it is */ }
    status.classList.add(response.ok ? "good" : "bad");
    status.textContent = `${response.status} ${response.statusText}, ${took} ms`;
    if (shown) answer.append(make("pre", { tabindex: "0", "aria-label": "Answer" }, shown));
  } catch (error) {
    status.classList.add("bad");
    status.textContent = `No answer: ${error.message}`;
  } finally {
    button.disabled = false;
  }
  answer.append(make("details", {}, make("summary", {}, "As a command"), make("pre", { tabindex: "0", "aria-label": "Command" }, command)));
};

// --- the page

const operation = (api, path, method, found) => {
  const id = found.operationId;
  const form = make("form", { autocomplete: "off" });
  for (const parameter of found.parameters.filter((each) => each.required)) form.append(parameterField(id, parameter));
  const content = found.requestBody?.content["application/json"];
  if (content) form.append(bodyField(api, id, content.schema));
  const optional = found.parameters.filter((each) => !each.required);
  if (optional.length) {
    const more = make("details", {}, make("summary", {}, "Options"));
    for (const parameter of optional) more.append(parameterField(id, parameter));
    form.append(more);
  }
  form.append(make("button", method === "DELETE" ? { class: "danger" } : {}, "Send"));
  const answer = make("div", { class: "answer" });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, method, path, answer);
  });
  form.addEventListener("input", shareName);
  const line = make("span", { class: "line" }, make("span", { class: `method ${method}` }, method),
    make("code", {}, ...breakable(path)), make("span", { class: "summary" }, found.summary));
  const paragraphs = found.description.split("\n\n").filter(Boolean).map((text) => make("p", {}, ...prose(text)));
  return make("details", { id }, make("summary", {}, line), ...paragraphs, form, answer);
};

// What the address names after its # is opened and marked: an operation, or a problem.
const reveal = () => {
  for (const before of document.querySelectorAll(".found")) before.classList.remove("found");
  const found = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  if (!found) return;
  if (found.tagName === "DETAILS") found.open = true;
  found.classList.add("found");
  found.scrollIntoView();
};

const show = (api) => {
  byId("version").textContent = api.info.version;
  byId("description").replaceChildren(...prose(api.info.description));
  const parts = new Map(); // by tag, in the order of their first operations
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, found] of Object.entries(methods)) {
      const [tag] = found.tags;
      if (!parts.has(tag)) parts.set(tag, []);
      parts.get(tag).push(operation(api, path, method.toUpperCase(), found));
      if (found.security) byId("access").hidden = false;
    }
  }
  byId("operations").replaceChildren();
  for (const [tag, operations] of parts) {
    const title = tag.replaceAll("-", " ");
    byId("operations").append(make("section", { "aria-labelledby": `part-${tag}` },
      make("h2", { id: `part-${tag}` }, title), ...operations));
    byId("parts").append(make("a", { href: `#part-${tag}` }, title));
  }
  byId("parts").append(make("a", { href: "#problems-title" }, "Problems"));
  for (const problem of api["x-problems"])
    byId("problems").append(make("dt", { id: problem.slug }, `${problem.status} ${problem.slug}`), make("dd", {}, problem.title));
  reveal();
};

byId("access").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", reveal);

fetch("/openapi.json")
  .then((response) => response.json())
  .then(show)
  .catch((error) => { byId("operations").textContent = `The document can't be read: ${error.message}`; });
