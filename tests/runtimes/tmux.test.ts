import { describeRuntime } from './conformance.ts'
import { openTmuxPlace } from './tmux-place.ts'

describeRuntime('tmux', openTmuxPlace)
