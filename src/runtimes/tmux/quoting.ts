/** Text in commands of tmux, in shell commands and in panes. */

/** A control character could end the line and start another command. */
const CONTROLS = /[\u0000-\u001f\u007f]/

/** Quotes one argument of a tmux command. Throws on control characters, which only a bug could put there. */
function quoteArgument(argument: string): string {
  if (CONTROLS.test(argument)) {
    throw new Error(`not an argument for tmux: ${JSON.stringify(argument.slice(0, 80))}`)
  }
  if (/^[A-Za-z0-9%@=:.,/_+-]+$/.test(argument)) return argument
  return quoteForShell(argument)
}

/** Joins commands into one line: tmux runs them without anything in between. */
export function commandLine(commands: readonly (readonly string[])[]): string {
  return commands.map((words) => words.map(quoteArgument).join(' ')).join(' ; ')
}

/** For arguments in which tmux expands `#{…}`. */
export function withoutFormats(text: string): string {
  return text.replaceAll('#', '##')
}

/** For arguments in which tmux also expands `%H`. */
export function withoutTimeFormats(text: string): string {
  return withoutFormats(text.replaceAll('%', '%%'))
}

/** Quotes one word of a shell command. Newlines are allowed. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

/**
 * Removes control characters: in pasted text they are key presses, and ESC [ 2 0 1 ~ would end the paste.
 * Newlines and tabs stay.
 */
export function withoutControls(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
