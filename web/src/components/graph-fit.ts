import type { FitViewOptions, ReactFlowInstance } from '@xyflow/react'
import { useEffect, useRef } from 'react'
import { isPhone } from './view-layout.tsx'

/** Smaller cards cannot be read on a phone, so a large graph starts with its middle and can be panned. */
const READABLE_ZOOM = 0.7

/** Keeps a graph fitted to its container, also after a resize or a new shape, until somebody moves it. */
export function useFitView(options: FitViewOptions, shape: string) {
  const fitViewOptions = isPhone() ? { ...options, minZoom: READABLE_ZOOM } : options
  const drawing = useRef<Pick<ReactFlowInstance, 'fitView'>>(undefined)
  const isMoved = useRef(false)
  const ref = useRef<HTMLDivElement>(null)
  const fit = () => {
    if (!isMoved.current) void drawing.current?.fitView(fitViewOptions)
  }
  useEffect(() => {
    const sizes = new ResizeObserver(fit)
    sizes.observe(ref.current!)
    return () => sizes.disconnect()
  }, [])
  useEffect(() => {
    const next = requestAnimationFrame(fit)
    return () => cancelAnimationFrame(next)
  }, [shape])
  return {
    ref,
    fitView: true,
    fitViewOptions,
    onInit(instance: Pick<ReactFlowInstance, 'fitView'>) {
      drawing.current = instance
    },
    onMove(event: unknown) {
      // No event: moved by fitView or by the zoom buttons.
      if (event !== null) isMoved.current = true
    },
  }
}
