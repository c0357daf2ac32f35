import { spawn } from 'node:child_process'

export interface Person {
  type(keys: string): void
  leave(): void
}

/** Sits down before a window of a tmux server, at a terminal of their own. */
export async function attachPerson(socket: string, target: string): Promise<Person> {
  const env = { ...process.env, TERM: 'xterm-256color', TMUX: '' }
  const command = `exec tmux -L ${socket} attach-session -t '${target}'`
  const terminal = spawn('script', ['-qefc', command, '/dev/null'], {
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  // tmux draws its screen once the person is in.
  await new Promise((resolve) => terminal.stdout.once('data', resolve))
  terminal.stdout.resume()
  return {
    type: (keys) => void terminal.stdin.write(keys),
    leave: () => void terminal.kill('SIGKILL'),
  }
}
