const bold = process.stdout.isTTY ? (/** @type {string} */ text) => `\u001b[1m${text}\u001b[0m` : String;

/** @param {string} text */
export function heading(text) {
  console.log(`\n${bold(`── ${text} `.padEnd(78, "─"))}`);
}

/** @param {string} text */
export function say(text) {
  console.log(text);
}

/** @param {number} milliseconds */
export function seconds(milliseconds) {
  return `${(milliseconds / 1000).toFixed(milliseconds < 9950 ? 1 : 0)} s`;
}
