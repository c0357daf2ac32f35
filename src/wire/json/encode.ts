/** Command → JSON on one line. A `<` is escaped, so that no tag can be seen in it. */
export function encodeJson(type: string, fields: Readonly<Record<string, string>>): string {
  return JSON.stringify({ orc_command: { type, ...fields } }).replaceAll('<', '\\u003c')
}
