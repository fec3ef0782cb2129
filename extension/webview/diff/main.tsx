/** The diff page: starts the app in the page that the extension made. */

import { render } from "preact";
import { App } from "./app";
import "./diff.css";

const root = document.getElementById("root");
if (root !== null) {
  render(<App />, root);
}
