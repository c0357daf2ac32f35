/**
 * Whatever came this far: a control character in pasted text is a key press, and ESC [ 2 0 1 ~ would end the paste.
 * Line ends and tabs are text.
 */
export function withoutControls(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
