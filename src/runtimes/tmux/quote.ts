/** Quoting for the two languages we write: tmux's command line and the shell's. Message text goes through neither. */

/** A control character could end a line and begin a command of its own. */
const CONTROLS = /[\u0000-\u001f\u007f]/

/** One argument of a tmux command. Throws on controls: they can only come from a mistake of ours. */
export function quoteArgument(argument: string): string {
  if (CONTROLS.test(argument)) {
    throw new Error(`not an argument for tmux: ${JSON.stringify(argument.slice(0, 80))}`)
  }
  if (/^[A-Za-z0-9%@=:.,/_+-]+$/.test(argument)) return argument
  return `'${argument.replaceAll("'", `'\\''`)}'`
}

/** Several commands as one line: tmux runs them in one go, with nothing of anyone else's in between. */
export function commandLine(commands: readonly (readonly string[])[]): string {
  return commands.map((words) => words.map(quoteArgument).join(' ')).join(' ; ')
}

/** For arguments in which tmux expands `#{…}`. */
export function withoutFormats(text: string): string {
  return text.replaceAll('#', '##')
}

/** For those in which it expands `%H` as well. */
export function withoutTimeFormats(text: string): string {
  return withoutFormats(text.replaceAll('%', '%%'))
}

/** One word of a shell's command. Newlines are fine there. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}
